import { afterEach, describe, expect, test } from 'vitest';
import { json, scriptedFetch } from '../../test/scripted-fetch.ts';
import { type Meeting, numbered, ready, scriptedSessions } from '../../test/scripted-sessions.ts';
import { SvcClient } from '../client.ts';
import { SessionConnection } from './connection.ts';
import { sessionEnded } from './ends.ts';
import { type SessionFrame, seqOf } from './frames.ts';
import type { ConnectOptions } from './options.ts';

const cleanUp: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of cleanUp.splice(0)) await end();
});

/** A connection to a server that follows these scripts, with short pauses between attempts. */
async function connect(meetings: Meeting[], options: ConnectOptions = {}, hasEnded = false) {
  const server = await scriptedSessions(...meetings);
  const connection = new SessionConnection(server.access, options, {
    ca: undefined,
    hasEnded: async () => hasEnded,
    ended: sessionEnded,
    firstDelayMs: 5,
  });
  cleanUp.push(() => connection.close(), server.close);
  return { server, connection };
}

async function collect(connection: AsyncIterable<SessionFrame>): Promise<SessionFrame[]> {
  const frames: SessionFrame[] = [];
  for await (const frame of connection) frames.push(frame);
  return frames;
}

async function numbersOf(connection: AsyncIterable<SessionFrame>) {
  return (await collect(connection)).map((frame) => seqOf(frame) ?? frame.type);
}

/** Sends these frames and then closes. */
const says =
  (texts: readonly string[], end?: readonly [number, string]): Meeting =>
  (socket) => {
    for (const text of texts) socket.send(text);
    if (end === undefined) socket.terminate();
    else socket.close(...end);
  };

const DONE = [1000, ''] as const;

describe('frames', () => {
  test('are yielded until the service closes with 1000; the token is sent in a header', async () => {
    const { server, connection } = await connect([
      says([ready(4), numbered(5), '{"type":"pong","ts":"now"}', 'rubbish'], DONE),
    ]);
    const frames = await collect(connection);
    expect(frames.map(({ type }) => type)).toEqual(['ready', 'text_delta', 'pong']);
    expect(connection.lastSeq).toBe(5);
    expect(await connection.closed).toEqual({ code: 1000, reason: '' });
    expect(server.seen[0]).toMatchObject({
      authorization: 'Bearer token-1',
      protocol: 'svc.v2',
      url: { search: '' },
    });
  });

  test('from a desktop are yielded as bytes', async () => {
    const { connection } = await connect([
      (socket) => {
        socket.send(ready(0));
        socket.send(Buffer.from([1, 2]));
        socket.close(1000);
      },
    ]);
    expect((await collect(connection))[1]).toEqual({
      type: 'screenshot',
      data: new Uint8Array([1, 2]),
    });
  });

  test('are yielded once and in order across connections', async () => {
    const statuses: string[] = [];
    const { server, connection } = await connect(
      [
        says([ready(0), numbered(1), numbered(2)]),
        says([ready(4), numbered(2), numbered(3), numbered(4)], [1001, 'server shutting down']),
        says([ready(4)], [1013, 'slow consumer']),
        503,
        says([ready(5), numbered(3), numbered(4), numbered(5)], DONE),
      ],
      { onStatus: (status) => statuses.push(status) },
    );
    expect(await numbersOf(connection)).toEqual(['ready', 1, 2, 3, 4, 5]);
    expect(server.seen.map(({ url }) => url.search)).toEqual([
      '',
      '?after_seq=2',
      '?after_seq=4',
      '?after_seq=4',
    ]);
    expect(statuses.filter((status) => status === 'connected')).toHaveLength(4);
    expect(statuses.filter((status) => status === 'disconnected')).toHaveLength(3);
  });

  test('missed before the first numbered frame are requested after the last_seq of ready', async () => {
    const { server, connection } = await connect([
      says([ready(41)]),
      says([ready(43), numbered(42), numbered(43)], DONE),
    ]);
    expect(await numbersOf(connection)).toEqual(['ready', 42, 43]);
    expect(server.seen[1]?.url.search).toBe('?after_seq=41');
  });

  test('are replayed after afterSeq', async () => {
    const { server, connection } = await connect([says([ready(9), numbered(8)], DONE)], {
      afterSeq: 7,
    });
    expect(await numbersOf(connection)).toEqual(['ready', 8]);
    expect(server.seen[0]?.url.search).toBe('?after_seq=7');
  });

  test('after a gap are replaced by an error; those before it are yielded', async () => {
    for (const [afterSeq, first] of [
      [undefined, 8],
      [7, 8],
      [0, 8],
    ] as const) {
      const texts = [ready(9), numbered(first), numbered(10)];
      const meeting = says(afterSeq === undefined ? [ready(7), ...texts.slice(1)] : texts, DONE);
      const { connection } = await connect([meeting], { afterSeq });
      const seen: unknown[] = [];
      const loop = (async () => {
        for await (const frame of connection) seen.push(seqOf(frame));
      })();
      await expect(loop).rejects.toMatchObject({ code: 'frames_lost' });
      expect(seen).toEqual([undefined, 8]);
      await expect(connection.closed).rejects.toMatchObject({ code: 'frames_lost' });
    }
  });

  test('no longer kept after afterSeq are an error, except after 0', async () => {
    const meeting = says([ready(9), numbered(9)], DONE);
    const { connection } = await connect([meeting], { afterSeq: 3 });
    await expect(collect(connection)).rejects.toMatchObject({ code: 'frames_lost' });
    const { connection: any } = await connect([meeting], { afterSeq: 0 });
    expect(await numbersOf(any)).toEqual(['ready', 9]);
  });

  test('continue with higher numbers after a session has lost its machine, without an error', async () => {
    const { connection } = await connect([
      says([ready(0), ...[1, 2, 3].map((seq) => numbered(seq))]),
      // Frame 3 was shown but not saved.
      says([ready(1002), numbered(1001, 2), numbered(1002)]),
      says([ready(1003), numbered(1003)], DONE),
    ]);
    expect(await numbersOf(connection)).toEqual(['ready', 1, 2, 3, 1001, 1002, 1003]);
  });

  test('lost before a jump of the numbers are an error if this connection has not seen them', async () => {
    const { connection } = await connect([
      says([ready(0), numbered(1)]),
      says([ready(1001), numbered(1001, 2)], DONE),
    ]);
    await expect(numbersOf(connection)).rejects.toMatchObject({ code: 'frames_lost' });
  });

  test('are queued by the thousands for a loop that is left and resumed', async () => {
    const all = Array.from({ length: 5_000 }, (_, i) => i + 1);
    const { connection } = await connect([
      says([ready(0), ...all.map((seq) => numbered(seq))], DONE),
    ]);
    const seen: number[] = [];
    for await (const frame of connection) {
      const seq = seqOf(frame);
      if (seq !== undefined) seen.push(seq);
      if (seq === 10) break;
    }
    for await (const frame of connection) seen.push(seqOf(frame) ?? -1);
    expect(seen).toEqual(all);
  });
});

describe('a later start of the session, after the loss of its machine,', () => {
  const completed = (id: string, seq: number) =>
    JSON.stringify({ type: 'task_completed', id, status: 'completed', result: '', seq, ts: 'now' });
  /** Says these frames once it has got so many. */
  const after =
    (count: number, texts: readonly string[], greeting: readonly string[]): Meeting =>
    (socket) => {
      let received = 0;
      socket.on('message', () => {
        received += 1;
        if (received < count) return;
        for (const text of texts) socket.send(text);
        socket.terminate();
      });
      for (const text of greeting) socket.send(text);
    };

  test('is a `ready` behind the frames saved before it, with what was sent and not answered', async () => {
    let connections = 0;
    const meetings: Meeting[] = [
      after(3, [numbered(1), completed('seen', 2)], [ready(0, { generation: 1 })]),
      // Another connection to the same start, which is not yielded.
      after(1, [], [ready(2, { generation: 1 })]),
      // Lost again before the frames were replayed.
      says([ready(1_000, { generation: 2, previous_seq: 4 }), numbered(3)]),
      (socket) => {
        socket.send(ready(1_000, { generation: 2, previous_seq: 4 }));
        socket.send(completed('saved', 4));
      },
    ];
    const { server, connection } = await connect(meetings, {
      onStatus: (status) => {
        if (status !== 'connected') return;
        connections += 1;
        if (connections === 2) connection.exec('make', { id: 'command' });
      },
    });
    for (const id of ['seen', 'saved', 'lost']) connection.task('work', { id });
    const frames: SessionFrame[] = [];
    for await (const frame of connection) {
      frames.push(frame);
      if (frames.length > 1 && frame.type === 'ready') break;
    }
    expect(frames.map((frame) => seqOf(frame) ?? frame.type)).toEqual([
      'ready',
      1,
      2,
      3,
      4,
      'ready',
    ]);
    expect(frames.at(-1)).toMatchObject({ generation: 2, unanswered: ['lost', 'command'] });
    connection.task('work', { id: 'lost' });
    await expect
      .poll(() => server.seen.at(-1)?.received)
      .toEqual([{ type: 'task', prompt: 'work', id: 'lost' }]);
  });

  test('does not report what the agent refused, in frames with a number', async () => {
    const refused = (seq: number, code: string, id: string) =>
      JSON.stringify({ type: 'error', code, message: 'No.', id, seq, ts: '' });
    const answers = [
      refused(1, 'busy', 'ninth'),
      refused(2, 'task_not_accepted', 'second'),
      refused(3, 'llm_unavailable', 'running'),
    ];
    const { connection } = await connect([
      after(3, answers, [ready(0, { generation: 1 })]),
      (socket) => socket.send(ready(1_000, { generation: 2, previous_seq: 3 })),
    ]);
    for (const id of ['ninth', 'second', 'running']) connection.task('work', { id });
    const frames: SessionFrame[] = [];
    for await (const frame of connection) if (frames.push(frame) === 5) break;
    expect(frames[4]).toMatchObject({ type: 'ready', generation: 2, unanswered: ['running'] });
  });

  test('does not report what waited to be sent, and was sent to it', async () => {
    let lost = () => undefined as unknown;
    const { server, connection } = await connect(
      [
        says([ready(3, { generation: 1 })]),
        (socket) => socket.send(ready(1_000, { generation: 2, previous_seq: 2 })),
      ],
      { onStatus: (status) => void (status === 'disconnected' && lost()) },
    );
    lost = () => connection.task('work', { id: 'waiting' });
    const frames: SessionFrame[] = [];
    for await (const frame of connection) if (frames.push(frame) === 2) break;
    expect(frames[1]).toMatchObject({ type: 'ready', generation: 2, unanswered: [] });
    await expect.poll(() => server.seen[1]?.received).toHaveLength(1);
  });
});

describe('the connection ends permanently', () => {
  test('when the sandbox was destroyed', async () => {
    const { server, connection } = await connect([says([ready(0)], [1001, 'sandbox destroyed'])]);
    expect(await numbersOf(connection)).toEqual(['ready']);
    expect(server.count()).toBe(1);
  });

  test.each([401, 403, 400])('with the problem of a refusal with %i', async (status) => {
    const { server, connection } = await connect([says([ready(0)]), status]);
    const loop = numbersOf(connection);
    await expect(loop).rejects.toMatchObject({
      status,
      code: 'refused_by_script',
      requestId: 'req-1',
    });
    expect(server.count()).toBe(2);
  });

  test('after the maximum number of failed reconnects', async () => {
    const { server, connection } = await connect([says([ready(0)]), 503], { maxReconnects: 4 });
    await expect(collect(connection)).rejects.toMatchObject({
      code: 'connection_lost',
      status: 503,
    });
    expect(server.count()).toBe(5);
  });

  test('after fewer attempts when it was never established', async () => {
    const { server, connection } = await connect([says([], [1011, 'upstream unavailable'])]);
    await expect(collect(connection)).rejects.toMatchObject({ code: 'connection_lost' });
    expect(server.count()).toBe(4);
  });

  test('when the upstream is unavailable because the session has ended', async () => {
    const gone = says([], [1011, 'upstream unavailable']);
    const { server, connection } = await connect([says([ready(0)]), gone], {}, true);
    await expect(collect(connection)).rejects.toMatchObject({ code: 'session_ended' });
    expect(server.count()).toBe(2);
  });

  test('when it is closed, connected or reconnecting', async () => {
    const open: Meeting = (socket) => socket.send(ready(0));
    for (const meetings of [[open], [says([ready(0)]), 503]]) {
      const { server, connection } = await connect(meetings, { maxReconnects: 1_000 });
      const frames = connection[Symbol.asyncIterator]();
      await frames.next();
      await expect.poll(() => server.count()).toBeGreaterThanOrEqual(meetings.length);
      await connection.close();
      expect(await frames.next()).toEqual({ done: true, value: undefined });
      expect(await connection.closed).toEqual({ code: 1000, reason: '' });
      expect(() => connection.task('more')).toThrow(
        expect.objectContaining({ code: 'connection_closed' }),
      );
      // An attempt in progress may still reach the server.
      await expect.poll(server.connections).toBe(0);
      const tries = server.count();
      await expect
        .poll(() => server.seen.every(({ socket }) => socket.readyState === 3))
        .toBe(true);
      expect(server.count()).toBe(tries);
    }
  });

  test('with the reason of its signal', async () => {
    const left = new AbortController();
    const { connection } = await connect([(socket) => socket.send(ready(0))], {
      signal: left.signal,
    });
    const loop = (async () => {
      for await (const _ of connection) left.abort(new Error('enough'));
    })();
    await expect(loop).rejects.toThrow('enough');
    const { connection: never } = await connect([503], { signal: AbortSignal.abort('early') });
    await expect(collect(never)).rejects.toBe('early');
  });
});

describe('sent frames', () => {
  test('wait for ready', async () => {
    let greet = () => undefined as unknown;
    const { server, connection } = await connect([
      (socket) => {
        greet = () => socket.send(ready(0));
      },
    ]);
    connection.task('one', { id: 'a' });
    connection.exec('ls');
    await expect.poll(() => server.seen).toHaveLength(1);
    expect(server.seen[0]?.received).toEqual([]);
    greet();
    for await (const _ of connection) break;
    connection.interrupt({ id: 'a' });
    connection.callTool('mouse', { action: 'click', x: 1, y: 2 }, { id: 'b' });
    connection.send({ type: 'ping' });
    await expect
      .poll(() => server.seen[0]?.received)
      .toEqual([
        { type: 'task', prompt: 'one', id: 'a' },
        { type: 'exec', command: 'ls' },
        { type: 'interrupt', id: 'a' },
        {
          type: 'tool_call',
          name: 'mouse',
          arguments: { action: 'click', x: 1, y: 2 },
          id: 'b',
        },
        { type: 'ping' },
      ]);
  });

  test('are queued while disconnected and sent on the next connection', async () => {
    let lost = () => undefined as unknown;
    const { server, connection } = await connect(
      [says([ready(0)]), 503, (socket) => socket.send(ready(0))],
      { onStatus: (status) => void (status === 'disconnected' && lost()) },
    );
    lost = () => connection.task('again');
    await expect.poll(() => server.seen[1]?.received).toEqual([{ type: 'task', prompt: 'again' }]);
  });

  test('are limited to 1 MiB each, and the queue is bounded', async () => {
    const { connection } = await connect([() => undefined]);
    const large = expect.objectContaining({ code: 'frame_too_large' });
    expect(() => connection.task('x'.repeat(2 ** 20))).toThrow(large);
    const full = expect.objectContaining({ code: 'send_queue_full' });
    expect(() => {
      for (let i = 0; i < 1_000; i += 1) connection.task('x');
    }).toThrow(full);
    const { connection: other } = await connect([() => undefined]);
    expect(() => {
      for (let i = 0; i < 9; i += 1) other.task('x'.repeat(2 ** 20 - 100));
    }).toThrow(full);
  });
});

test('the client creates a session and connects to it', async () => {
  const server = await scriptedSessions(says([ready(0)], [1011, 'upstream unavailable']));
  cleanUp.push(server.close);
  const { fetch, seen } = scriptedFetch(
    json(201, server.access),
    json(200, { ...server.access, status: 'completed' }),
  );
  const client = new SvcClient({ baseUrl: 'https://svc.test', fetch });
  const access = await client.sessions.create({
    agent: { kind: 'deictic' },
    app: { id: 'deictic' },
    template: 'standard',
    llm: { vendor: 'anthropic' },
    user_id: 'ada',
  });
  await expect(collect(client.sessions.connect(access))).rejects.toMatchObject({
    code: 'session_ended',
  });
  expect(seen.map(({ method, url }) => `${method} ${url.pathname}`)).toEqual([
    'POST /v1/sessions',
    'GET /v1/sessions/session-1',
  ]);
  expect(seen[0]?.headers.get('idempotency-key')).toBeTruthy();
});
