import { type ClientFrame, writeViewUpdate } from '@svc/contract';
import { afterEach, describe, expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import {
  type Meeting,
  numbered,
  ready,
  type SeenConnection,
  scriptedSessions,
} from '../../test/scripted-sessions.ts';
import { SessionConnection } from './connection.ts';
import type { DesktopView } from './desktop-view.ts';
import { sessionEnded } from './ends.ts';
import type { ConnectOptions } from './options.ts';

const cleanUp: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of cleanUp.splice(0)) await end();
});

/** A connection to a server that says `ready` and then follows the script for each message. */
async function connect(
  answer: (socket: WebSocket, frame: ClientFrame) => void,
  options: ConnectOptions = {},
) {
  const meeting: Meeting = (socket) => {
    socket.send(ready(0));
    socket.on('message', (data) => answer(socket, JSON.parse(data.toString())));
  };
  const server = await scriptedSessions(meeting);
  const connection = new SessionConnection(server.access, options, {
    ca: undefined,
    hasEnded: async () => false,
    ended: sessionEnded,
    firstDelayMs: 5,
  });
  cleanUp.push(() => connection.close(), server.close);
  return { server, connection };
}

const update = (number: number) =>
  writeViewUpdate({ number, isCurrent: true, width: 1280, height: 800, regions: [] });
const result = (id: string | undefined, more: object = {}) =>
  JSON.stringify({ type: 'tool_result', id, content: '', is_error: false, ts: 'now', ...more });

/** Answers `watch` with the first update, and each confirmation with the next one. */
function show(socket: WebSocket, frame: ClientFrame): void {
  if (frame.type === 'view_ack') socket.send(update(frame.number + 1));
  if (frame.type !== 'tool_call') return;
  socket.send(result(frame.id));
  if (frame.name === 'watch') socket.send(update(1));
}

async function numbers(view: DesktopView, count: number): Promise<number[]> {
  const seen: number[] = [];
  for await (const { number } of view) {
    seen.push(number);
    if (seen.length === count) break;
  }
  return seen;
}

const received = (seen: SeenConnection | undefined) => seen?.received ?? [];
const refusal = (code: string) => expect.objectContaining({ code });

describe('a view', () => {
  test('yields updates, and confirms each when the next one is asked for', async () => {
    const { server, connection } = await connect(show);
    expect(await numbers(connection.watch({ fps: 5, quality: 30 }), 3)).toEqual([1, 2, 3]);
    const [seen] = server.seen;
    const id = 'svc-view-1';
    await expect
      .poll(() => received(seen))
      .toEqual([
        { type: 'tool_call', id, name: 'watch', arguments: { fps: 5, quality: 30 } },
        { type: 'view_ack', number: 1 },
        { type: 'view_ack', number: 2 },
        { type: 'tool_call', id, name: 'unwatch', arguments: {} },
      ]);
  });

  test('leaves the frames of the connection as they are, but for its own answers', async () => {
    const { connection } = await connect((socket, frame) => {
      show(socket, frame);
      if (frame.type === 'tool_call' && frame.name === 'mouse') socket.close(1000);
      if (frame.type === 'tool_call' && frame.name === 'unwatch') {
        socket.send(numbered(1));
        socket.send(Buffer.from([0x89, 0x50]));
      }
    });
    await numbers(connection.watch(), 2);
    connection.callTool('mouse', { action: 'move', x: 1, y: 1 }, { id: 'm' });
    const types: string[] = [];
    for await (const frame of connection) {
      types.push('id' in frame ? `${frame.type} ${frame.id}` : frame.type);
    }
    expect(types).toEqual(['ready', 'text_delta', 'screenshot', 'tool_result m']);
  });

  test('shows nothing of an earlier one', async () => {
    const { connection } = await connect((socket, frame) => {
      if (frame.type !== 'tool_call' || frame.name !== 'watch') return;
      if (frame.id === 'svc-view-2') socket.send(update(7));
      socket.send(result(frame.id));
      socket.send(update(frame.id === 'svc-view-2' ? 8 : 1));
    });
    expect(await numbers(connection.watch(), 1)).toEqual([1]);
    expect(await numbers(connection.watch(), 1)).toEqual([8]);
  });

  test('begins again after a reconnect', async () => {
    let isFirst = true;
    const { server, connection } = await connect((socket, frame) => {
      show(socket, frame);
      if (frame.type !== 'view_ack' || !isFirst) return;
      isFirst = false;
      socket.terminate();
    });
    const seen = await numbers(connection.watch({ quality: 50 }), 5);
    expect(seen.slice(-3)).toEqual([1, 2, 3]);
    expect(server.seen).toHaveLength(2);
    expect(received(server.seen[1])[0]).toMatchObject({
      name: 'watch',
      arguments: { quality: 50 },
    });
  });

  test('can be asked for before the connection is established, and again once it has ended', async () => {
    const { connection } = await connect(show);
    const view = connection.watch();
    expect(() => connection.watch()).toThrow(refusal('already_watching'));
    expect(await numbers(view, 1)).toEqual([1]);
    expect(await view.next()).toEqual({ done: true, value: undefined });
    expect(await numbers(connection.watch(), 1)).toEqual([1]);
  });

  test('ends with the connection', async () => {
    const { connection } = await connect((socket, frame) => {
      show(socket, frame);
      if (frame.type === 'view_ack') socket.close(1000);
    });
    const seen: number[] = [];
    for await (const { number } of connection.watch()) seen.push(number);
    expect(seen[0]).toBe(1);
    await connection.closed;
    expect(() => connection.watch()).toThrow(refusal('connection_closed'));
  });

  test('throws the error with which the connection ends', async () => {
    const { connection } = await connect(
      (socket, frame) => {
        show(socket, frame);
        if (frame.type === 'view_ack') socket.close(1011, 'upstream unavailable');
      },
      { maxReconnects: 0 },
    );
    await expect(numbers(connection.watch(), 100)).rejects.toMatchObject({
      code: 'connection_lost',
    });
  });
});

describe('a view that is refused', () => {
  test.each<[string, object, string]>([
    ['without a desktop', { type: 'error', code: 'tool_not_available' }, 'tool_not_available'],
    ['beyond the rate', { type: 'error', code: 'frame_rate' }, 'frame_rate'],
    ['with such arguments', { is_error: true }, 'watch_refused'],
  ])('%s throws', async (_what, more, code) => {
    const { connection } = await connect((socket, frame) => {
      if (frame.type === 'tool_call') socket.send(result(frame.id, { message: 'No.', ...more }));
    });
    const view = connection.watch();
    await expect(view.next()).rejects.toMatchObject({ code });
    expect(await view.next()).toEqual({ done: true, value: undefined });
  });

  test('because the service sends more than it may throws, and keeps nothing', async () => {
    const { connection } = await connect((socket, frame) => {
      if (frame.type !== 'tool_call' || frame.name !== 'watch') return;
      socket.send(result(frame.id));
      for (let number = 1; number < 100; number += 1) socket.send(update(number));
    });
    const view = connection.watch();
    for await (const frame of connection) {
      if (frame.type === 'ready') break;
    }
    await expect
      .poll(() => {
        try {
          connection.watch();
          return 'open';
        } catch (error) {
          return error instanceof Error ? error.message : '';
        }
      })
      .toBe('open');
    await expect(view.next()).rejects.toMatchObject({ code: 'invalid_response' });
  });
});

test('a message that is no update is neither shown nor yielded', async () => {
  const { connection } = await connect((socket, frame) => {
    if (frame.type !== 'tool_call' || frame.name !== 'watch') return;
    socket.send(result(frame.id));
    socket.send(update(1).with(4, 99));
    socket.send(update(2));
  });
  expect(await numbers(connection.watch(), 1)).toEqual([2]);
});
