import { beforeAll, describe, expect, it } from 'vitest';
import { useSessionLab } from '../../test/session-lab.ts';
import { hopToken, SessionSocket } from '../../test/session-socket.ts';

let session: string;

const lab = useSessionLab({}, 'file');

beforeAll(async () => {
  ({ session } = await lab().harness.startSession());
});

const MIB = 1024 * 1024;

/** A task whose frame has this many bytes. */
function taskOf(bytes: number): string {
  const empty = JSON.stringify({ type: 'task', prompt: '' });
  return JSON.stringify({ type: 'task', prompt: 'x'.repeat(bytes - empty.length) });
}

describe('a client’s frame', () => {
  it.each([
    ['binary', Buffer.from('{"type":"ping"}'), 'frame_binary'],
    ['not JSON', 'hello', 'frame_invalid'],
    ['empty', '', 'frame_invalid'],
    ['an array', '[]', 'frame_invalid'],
    ['null', 'null', 'frame_invalid'],
    ['without a type', '{}', 'frame_invalid'],
    ['of an unknown type', '{"type":"constructor"}', 'frame_invalid'],
    ['of a type that only the service sends', '{"type":"ready"}', 'frame_invalid'],
    ['without its fields', '{"type":"task"}', 'frame_invalid'],
    ['with wrong fields', '{"type":"exec","command":7}', 'frame_invalid'],
    [
      'deeply nested',
      `{"type":"tool_call","name":"x","arguments":{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}}`,
      'frame_invalid',
    ],
    [
      'of very many values',
      `{"type":"tool_call","name":"x","arguments":{"a":[${'{},'.repeat(70_000)}0]}}`,
      'frame_invalid',
    ],
    ['one byte too large', taskOf(MIB + 1), 'frame_too_large'],
    ['several MiB', 'x'.repeat(7 * MIB), 'frame_too_large'],
  ])(
    'that is %s is answered with an error to its sender only, and keeps the connection open',
    async (_what, data, code) => {
      const other = await lab().attach(session);
      const client = await lab().attach(session);
      client.ws.send(data);
      const error = await client.next(({ type }) => type === 'error');
      expect(error).toEqual({
        type: 'error',
        code,
        message: expect.any(String),
        ts: expect.any(String),
      });
      client.send({ type: 'ping' });
      expect(await client.next(({ type }) => type === 'pong')).toEqual({
        type: 'pong',
        ts: expect.any(String),
      });
      expect(other.types).toEqual(['ready']);
      await other.close();
      await client.close();
    },
  );

  it('of exactly 1 MiB is accepted', async () => {
    const client = await lab().attach(session);
    client.ws.send(taskOf(MIB));
    await client.next(({ type }) => type === 'task_completed');
    await client.close();
  });

  it('of 16 MiB closes its own connection only', async () => {
    const other = await lab().attach(session);
    const client = await lab().attach(session);
    client.ws.send('x'.repeat(16 * MIB));
    expect((await client.closed).code).toBe(1009);
    other.send({ type: 'ping' });
    await other.next(({ type }) => type === 'pong');
    await other.close();
  });
});

describe('too many frames', () => {
  it('are dropped with at most one error a second, without affecting other clients', async () => {
    const client = await lab().attach(session);
    const other = await lab().attach(session);
    const before = lab().guest.all('client').length;
    const begun = performance.now();
    for (let index = 0; index < 10_000; index += 1) {
      client.send({ type: 'exec', command: `true ${index}` });
    }
    await client.next((frame) => frame.code === 'frame_rate');
    other.send({ type: 'ping' });
    await other.next(({ type }) => type === 'pong');
    const typesAfterPing = () => {
      client.send({ type: 'ping' });
      return client.types;
    };
    await expect.poll(typesAfterPing).toContain('pong');
    const passed = () => lab().guest.all('client').length - before;
    await expect.poll(() => passed()).toBeGreaterThan(0);
    // On a slow machine the test takes longer, so more frames may pass.
    const seconds = (performance.now() - begun) / 1000;
    expect(passed()).toBeLessThanOrEqual(1_000 + 200 * seconds);
    const told = client.frames.filter(({ code }) => code === 'frame_rate').length;
    expect(told).toBeLessThanOrEqual(1 + seconds);
    expect(other.types.filter((type) => type === 'error')).toEqual([]);
    await client.close();
    await other.close();
  });

  it('for a guest that accepts none are answered with busy', async () => {
    const stuck = await lab().addGuest();
    stuck.answersReceived = false;
    const { client } = await lab().startAttached();
    for (let index = 0; index < 400; index += 1) client.send({ type: 'interrupt' });
    await client.next((frame) => frame.code === 'busy');
    await client.close();
  });
});

describe('an upgrade', () => {
  it.each([
    ['no token', async () => null],
    ['an invalid token', async () => 'nonsense'],
    [
      'the token of another session',
      () => hopToken(lab().harness, '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b'),
    ],
    ['a token for another worker', () => hopToken(lab().harness, session, 'worker-2')],
    ['an internal token', () => lab().harness.token()],
  ])('with %s is refused', async (_what, token) => {
    expect(await SessionSocket.refusal(lab().harness, session, { token: await token() })).toEqual({
      status: 401,
      code: 'unauthorized',
    });
  });

  it('is refused for an unknown session', async () => {
    const unknown = '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b';
    expect(await SessionSocket.refusal(lab().harness, unknown)).toEqual({
      status: 404,
      code: 'session_not_found',
    });
  });

  it.each([['/internal/v1/sandboxes'], ['/internal/v1/sessions/x/ws/more'], ['/']])(
    'to %s is refused',
    async (path) => {
      expect(await SessionSocket.refusal(lab().harness, session, { path })).toMatchObject({
        status: 404,
      });
    },
  );

  it.each(['-1', 'x', '1e3', ''])('with after_seq "%s" is refused', async (seq) => {
    const path = `/internal/v1/sessions/${session}/ws?after_seq=${seq}`;
    expect(await SessionSocket.refusal(lab().harness, session, { path })).toEqual({
      status: 400,
      code: 'validation_failed',
    });
  });
});
