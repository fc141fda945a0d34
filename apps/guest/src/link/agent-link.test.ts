import {
  AGENT_LINK_LINE_BYTES,
  AGENT_LINK_WORKER_LINE_BYTES,
  type AgentSetup,
  LIMITS,
} from '@svc/contract';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { WorkerConnection } from '../../test/worker-connection.ts';
import { AgentLink, type AgentLinkOptions, type LinkHandler } from './agent-link.ts';

const SETUP = { mode: 'session', agent: 'deictic' } as AgentSetup;
const TOKEN = 'the token of the link';

let link: AgentLink;
let connections: WorkerConnection[];
const handler = {
  configure: vi.fn(),
  client: vi.fn(),
  setValues: vi.fn(),
  capture: vi.fn(),
  stopCapture: vi.fn(),
  save: vi.fn(),
};

beforeEach(() => {
  connections = [];
  for (const mock of Object.values(handler)) mock.mockReset();
});
afterEach(async () => {
  for (const worker of connections) worker.close();
  await link.close();
});

async function listen(options: Partial<AgentLinkOptions> = {}): Promise<void> {
  link = await AgentLink.listen({ host: '127.0.0.1', port: 0, ...options }, handler as LinkHandler);
}

async function open(): Promise<WorkerConnection> {
  const worker = await WorkerConnection.open(link.port);
  connections.push(worker);
  return worker;
}

async function configured(): Promise<WorkerConnection> {
  const worker = await open();
  worker.send({ type: 'configure', token: TOKEN, setup: SETUP });
  await worker.waitFor('configured');
  return worker;
}

async function attach(after: number): Promise<WorkerConnection> {
  const worker = await open();
  worker.send({ type: 'attach', token: TOKEN, after });
  await worker.waitFor('attached');
  return worker;
}

const text = (data: string) => link.frame({ type: 'text_delta', data });
const textOf = (worker: WorkerConnection) =>
  worker.all('frame').map(({ n, frame }) => [n, 'data' in frame ? frame.data : frame.type]);

describe('authentication', () => {
  test('accepts the first configuration, and later any connection with its token', async () => {
    await listen();
    await configured();
    expect(handler.configure).toHaveBeenCalledExactlyOnceWith(SETUP);
    expect((await attach(0)).all('attached')).toEqual([{ type: 'attached', c: 0 }]);
  });

  test.each([
    ['a wrong token', { type: 'attach', token: 'guess', after: 0 }],
    ['another configuration', { type: 'configure', token: 'mine', setup: SETUP }],
    ['no token at all', { type: 'save' }],
    ['a client frame', { type: 'client', c: 1, frame: { type: 'exec', command: 'true' } }],
    ['new values', { type: 'env', env: {} }],
    ['an acknowledgement', { type: 'ack', n: 1 }],
    ['a request for pictures', { type: 'capture', id: 1, whole: true, quality: 70 }],
  ] as const)(
    '%s ends the connection and leaves the authenticated one alone',
    async (_what, said) => {
      await listen();
      const owner = await configured();
      const stranger = await open();
      stranger.send(said);
      await stranger.ended();
      text('still here');
      await owner.waitForFrame('text_delta');
      expect(stranger.received).toEqual([]);
      expect(handler.configure).toHaveBeenCalledOnce();
      for (const name of ['client', 'setValues', 'capture', 'save'] as const) {
        expect(handler[name]).not.toHaveBeenCalled();
      }
    },
  );

  test('accepts the largest environment with the longest conversation', async () => {
    await listen();
    // In JSON, each of these bytes is an escape of six.
    const env = { A: '\u0001'.repeat(LIMITS.sessionEnvBytes) };
    const setup = { ...SETUP, env, conversation: 'x'.repeat(AGENT_LINK_LINE_BYTES) };
    const worker = await open();
    worker.send({ type: 'configure', token: TOKEN, setup }, { type: 'env', env });
    await worker.waitFor('configured');
    expect(handler.configure.mock.calls[0]).toEqual([setup]);
    await expect.poll(() => handler.setValues).toHaveBeenCalledOnce();
  });

  test('rejects an attachment before the configuration', async () => {
    await listen();
    const worker = await open();
    worker.send({ type: 'attach', token: '', after: 0 });
    await worker.ended();
  });

  test('rejects processes of the guest, even with the token', async () => {
    await listen({ workerAddress: '192.0.2.1' });
    const worker = await open();
    worker.send({ type: 'configure', token: TOKEN, setup: SETUP });
    await worker.ended();
    expect(handler.configure).not.toHaveBeenCalled();
  });

  test('discards the token of a rehearsal, and refuses rehearsals once configured', async () => {
    await listen();
    const rehearsal = { type: 'rehearse', token: 'rehearsal', setup: SETUP } as const;
    const first = await open();
    first.send(rehearsal);
    await first.waitFor('rehearsed');
    first.send({ type: 'attach', token: 'rehearsal', after: 0 });
    await first.ended();
    expect(handler.configure).not.toHaveBeenCalled();
    await configured();
    const late = await open();
    late.send(rehearsal);
    await late.ended();
    expect(late.received).toEqual([]);
  });

  test('closes a connection that does not authenticate in time', async () => {
    await listen({ authenticateMs: 50 });
    const silent = await open();
    await silent.ended();
    const rehearsing = await open();
    rehearsing.send({ type: 'rehearse', token: TOKEN, setup: SETUP });
    await rehearsing.ended();
  });

  test('bounds the connections that have not authenticated, and frees their places', async () => {
    await listen({ authenticateMs: 1_500 });
    const silent = await Promise.all(Array.from({ length: 10 }, () => open()));
    await expect.poll(() => silent.filter(({ closed }) => closed).length).toBe(6);
    await expect.poll(() => silent.every(({ closed }) => closed)).toBe(true);
    await configured();
  });

  test.each([
    ['invalid JSON', 'hello\n'],
    ['an unknown message type', '{"type":"constructor"}\n'],
    ['a message without its fields', '{"type":"attach","token":5,"after":0}\n'],
    ['a request for pictures without a quality', '{"type":"capture","id":1,"whole":true}\n'],
    ['an endless line', 'x'.repeat(AGENT_LINK_WORKER_LINE_BYTES + 1)],
  ])('%s ends the connection', async (_what, said) => {
    await listen();
    const worker = await open();
    worker.sendText(said);
    await worker.ended();
  });
});

describe('numbered messages', () => {
  test('arrive in order, and again after a reconnect until they are acknowledged', async () => {
    await listen();
    const first = await configured();
    for (const word of ['a', 'b', 'c']) text(word);
    await first.waitForFrame('text_delta', { data: 'c' });
    first.send({ type: 'ack', n: 1 });
    first.close();
    text('d');
    const second = await attach(2);
    await second.waitForFrame('text_delta', { data: 'd' });
    expect(textOf(second)).toEqual([
      [3, 'c'],
      [4, 'd'],
    ]);
    const third = await attach(2);
    await third.waitForFrame('text_delta', { data: 'd' });
    expect(textOf(third)).toEqual(textOf(second));
  });

  test('go only to the newest connection', async () => {
    await listen();
    const first = await configured();
    const second = await attach(0);
    await first.ended();
    text('for the second');
    await second.waitForFrame('text_delta');
    expect(first.all('frame')).toEqual([]);
  });

  test('state and exit are numbered like frames', async () => {
    await listen();
    const worker = await configured();
    link.state('all of it', true);
    link.exited(3);
    await worker.waitFor('exited');
    expect(worker.received.slice(1)).toEqual([
      { type: 'state', conversation: 'all of it', files: true, n: 1 },
      { type: 'exited', exitCode: 3, n: 2 },
    ]);
  });

  test('are all delivered across a reconnect, however many', async () => {
    await listen();
    const first = await configured();
    for (let index = 0; index < 20_000; index += 1) text(`${index} ${'x'.repeat(200)}`);
    await first.waitForFrame('text_delta');
    first.close();
    const seen = first.all('frame').at(-1)?.n ?? 0;
    const second = await attach(seen);
    await second.waitFor('frame', ({ n }) => n === 20_000);
    expect(second.all('frame').map(({ n }) => n)).toEqual(
      Array.from({ length: 20_000 - seen }, (_, index) => seen + index + 1),
    );
  });
});

describe('a slow worker', () => {
  test('makes the agent wait until enough is acknowledged', async () => {
    await listen({ unacknowledgedBytes: 10_000 });
    const worker = await configured();
    await link.drained();
    for (let index = 0; index < 11; index += 1) text('x'.repeat(1000));
    let drained = false;
    const waiting = link.drained().then(() => {
      drained = true;
    });
    await worker.waitFor('frame', ({ n }) => n === 11);
    expect(drained).toBe(false);
    worker.send({ type: 'ack', n: 10 });
    await waiting;
  });

  test('and an agent that does not wait: drops frames, reports it once, delivers the end of the task', async () => {
    await listen({ unacknowledgedBytes: 10_000 });
    const worker = await configured();
    worker.pause();
    for (let index = 0; index < 100; index += 1) text('x'.repeat(1000));
    link.frame({ type: 'task_completed', status: 'completed', result: '' });
    worker.close();
    const next = await attach(0);
    await next.waitForFrame('task_completed');
    expect(next.order().filter((type) => type === 'error')).toHaveLength(1);
    expect(next.order().length).toBeLessThan(30);
  });

  test('replaces a frame too large for the link by an error, and stays open', async () => {
    await listen();
    const worker = await configured();
    text('x'.repeat(AGENT_LINK_LINE_BYTES));
    await worker.waitForFrame('error', { code: 'frame_too_large' });
    expect(link.state('x'.repeat(AGENT_LINK_LINE_BYTES), false)).toBe(false);
    text('on');
    await worker.waitForFrame('text_delta', { data: 'on' });
  });
});

describe('client frames', () => {
  test('are handled once however often they arrive, and always acknowledged', async () => {
    await listen();
    const worker = await configured();
    const frame = { type: 'exec', command: 'true' } as const;
    worker.send({ type: 'client', c: 1, frame }, { type: 'client', c: 2, frame });
    worker.send({ type: 'client', c: 1, frame });
    await expect.poll(() => worker.all('received').map(({ c }) => c)).toEqual([1, 2, 1]);
    const again = await attach(0);
    expect(again.all('attached')).toEqual([{ type: 'attached', c: 2 }]);
    again.send({ type: 'client', c: 2, frame }, { type: 'client', c: 3, frame });
    await again.waitFor('received', ({ c }) => c === 3);
    expect(handler.client).toHaveBeenCalledTimes(3);
  });
});

describe('requests for pictures', () => {
  const REQUEST = { id: 3, whole: true, quality: 70 };

  test('are handled, answered and withdrawn', async () => {
    await listen();
    const worker = await configured();
    worker.send({ type: 'capture', ...REQUEST });
    await expect.poll(() => handler.capture).toHaveBeenCalledOnce();
    expect(handler.capture.mock.calls[0]?.[0]).toMatchObject(REQUEST);
    link.captured(3, 'cGljdHVyZQ==');
    expect(await worker.waitFor('captured')).toEqual({
      type: 'captured',
      id: 3,
      update: 'cGljdHVyZQ==',
    });
    handler.stopCapture.mockReset();
    worker.send({ type: 'capture_stop' });
    await expect.poll(() => handler.stopCapture).toHaveBeenCalledOnce();
  });

  test('end with the connection that made them, and are answered on no other', async () => {
    await listen();
    const first = await configured();
    first.send({ type: 'capture', ...REQUEST });
    await expect.poll(() => handler.capture).toHaveBeenCalledOnce();
    handler.stopCapture.mockReset();
    first.close();
    await expect.poll(() => handler.stopCapture).toHaveBeenCalledOnce();
    link.captured(3, 'lost');
    const second = await attach(0);
    handler.stopCapture.mockReset();
    await attach(0);
    expect(handler.stopCapture).toHaveBeenCalled();
    text('the end');
    expect(second.all('captured')).toEqual([]);
  });
});
