import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CaptureRequest, readViewUpdate, writeViewUpdate } from '@svc/contract';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Desktop } from '../desktop/index.ts';
import { LiveView, type LiveViewOptions } from './live-view.ts';

/** What the element server has been asked for, and how to answer it. */
interface Asked {
  readonly since: number;
  readonly quality: number;
  isGone: boolean;
  answer(body: Uint8Array | string, status?: number): void;
}

let server: Server;
let asked: Asked[];
let sent: { id: number; number: number | undefined }[];
let faults: unknown[];
let session: AbortController;

beforeEach(async () => {
  asked = [];
  sent = [];
  faults = [];
  session = new AbortController();
  server = createServer((request, response) => {
    const query = new URL(request.url ?? '', 'http://guest').searchParams;
    const one: Asked = {
      since: Number(query.get('since')),
      quality: Number(query.get('quality')),
      isGone: false,
      answer: (body, status = 200) => response.writeHead(status).end(body),
    };
    response.on('close', () => {
      one.isGone = !response.writableEnded;
    });
    asked.push(one);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  session.abort(new Error('the session has ended'));
  server.closeAllConnections();
  server.close();
});

function view(more: Partial<LiveViewOptions> = {}): LiveView {
  const { port } = server.address() as AddressInfo;
  const desktop = new Desktop({
    display: ':none',
    server: `http://127.0.0.1:${port}`,
    starts: '/nonexistent',
    width: 1280,
    height: 800,
  });
  return new LiveView({
    desktop,
    captured: (id, update) =>
      sent.push({ id, number: readViewUpdate(Buffer.from(update, 'base64'))?.number }),
    onFault: (error) => faults.push(error),
    signal: session.signal,
    ...more,
  });
}

const request = (id: number, more: Partial<CaptureRequest> = {}): CaptureRequest => ({
  id,
  whole: false,
  quality: 70,
  ...more,
});
const update = (number: number) =>
  writeViewUpdate({ number, isCurrent: true, width: 1280, height: 800, regions: [] });
const askedFor = (times: number) =>
  expect.poll(() => asked.length, { timeout: 10_000 }).toBe(times);
const wasSent = (...expected: typeof sent) => expect.poll(() => sent).toEqual(expected);

describe('the live view of a guest', () => {
  test('asks for nothing by itself, then for all, then for what follows the last answer', async () => {
    const live = view();
    live.capture(request(1, { whole: true, quality: 30 }));
    await askedFor(1);
    expect(asked[0]).toMatchObject({ since: 0, quality: 30 });
    asked[0]?.answer(update(500));
    await wasSent({ id: 1, number: 500 });
    expect(asked).toHaveLength(1);
    live.capture(request(2));
    await askedFor(2);
    expect(asked[1]).toMatchObject({ since: 500, quality: 70 });
    asked[1]?.answer(update(501));
    await wasSent({ id: 1, number: 500 }, { id: 2, number: 501 });
    live.capture(request(3, { whole: true }));
    await askedFor(3);
    expect(asked[2]?.since).toBe(0);
  });

  test('asks again while nothing has changed, and while the server does not answer', async () => {
    view().capture(request(1));
    await askedFor(1);
    asked[0]?.answer('');
    await askedFor(2);
    asked[1]?.answer('{"error":"there is no display"}', 503);
    await askedFor(3);
    asked[2]?.answer(update(7));
    await wasSent({ id: 1, number: 7 });
    expect(faults).toEqual([]);
  });

  test('answers the last request only', async () => {
    const live = view();
    live.capture(request(1));
    await askedFor(1);
    live.capture(request(2));
    await askedFor(2);
    await expect.poll(() => asked[0]?.isGone).toBe(true);
    asked[1]?.answer(update(7));
    await wasSent({ id: 2, number: 7 });
  });

  test.each([
    ['is stopped', (live: LiveView) => live.stop()],
    ['belongs to a session that ends', () => session.abort(new Error('the session has ended'))],
  ])('leaves the server when it %s', async (_what, end) => {
    const live = view();
    live.capture(request(1));
    await askedFor(1);
    end(live);
    await expect.poll(() => asked[0]?.isGone).toBe(true);
    expect([sent, faults]).toEqual([[], []]);
  });

  test('reports a server that sends something else', async () => {
    view().capture(request(1));
    await askedFor(1);
    asked[0]?.answer('something else');
    await expect.poll(() => faults).toHaveLength(1);
    expect(sent).toEqual([]);
  });

  test('without a desktop answers nothing', async () => {
    view({ desktop: undefined }).capture(request(1));
    expect([asked, sent, faults]).toEqual([[], [], []]);
  });
});
