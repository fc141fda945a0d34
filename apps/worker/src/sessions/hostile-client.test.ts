import { beforeAll, describe, expect, it } from 'vitest';
import { useSessionLab } from '../../test/session-lab.ts';
import { hopToken, SessionSocket } from '../../test/session-socket.ts';
import { until } from '../../test/until.ts';

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

describe('a frame that is none', () => {
  it.each([
    ['binary', Buffer.from('{"type":"ping"}'), 'frame_binary'],
    ['no JSON', 'hello', 'frame_invalid'],
    ['empty', '', 'frame_invalid'],
    ['no object', '[]', 'frame_invalid'],
    ['null', 'null', 'frame_invalid'],
    ['of no type', '{}', 'frame_invalid'],
    ['of an unknown type', '{"type":"constructor"}', 'frame_invalid'],
    ['of a type of the service', '{"type":"ready"}', 'frame_invalid'],
    ['without its fields', '{"type":"task"}', 'frame_invalid'],
    ['with wrong fields', '{"type":"exec","command":7}', 'frame_invalid'],
    [
      'deep',
      `{"type":"tool_call","name":"x","arguments":{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}}`,
      'frame_invalid',
    ],
    ['one byte too large', taskOf(MIB + 1), 'frame_too_large'],
    ['several MiB', 'x'.repeat(7 * MIB), 'frame_too_large'],
  ])(
    'because it is %s is answered to its sender alone, and the connection lives',
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

  it('is taken at exactly 1 MiB', async () => {
    const client = await lab().attach(session);
    client.ws.send(taskOf(MIB));
    await client.next(({ type }) => type === 'task_completed');
    await client.close();
  });

  it('of 16 MiB ends its own connection only', async () => {
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
  it('are dropped and said so once a second; the session and the others go on', async () => {
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
    await until(() => {
      client.send({ type: 'ping' });
      expect(client.types).toContain('pong');
    });
    const passed = () => lab().guest.all('client').length - before;
    await until(() => expect(passed()).toBeGreaterThan(0));
    // A slow machine takes so long that more may pass.
    const seconds = (performance.now() - begun) / 1000;
    expect(passed()).toBeLessThanOrEqual(1_000 + 200 * seconds);
    const told = client.frames.filter(({ code }) => code === 'frame_rate').length;
    expect(told).toBeLessThanOrEqual(1 + seconds);
    expect(other.types.filter((type) => type === 'error')).toEqual([]);
    await client.close();
    await other.close();
  });

  it('for a guest that takes none are answered busy', async () => {
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
    ['nonsense', async () => 'nonsense'],
    [
      'the token of another session',
      () => hopToken(lab().harness, '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b'),
    ],
    ['a token that a customer has', () => hopToken(lab().harness, session, 'runtime')],
  ])('with %s is refused', async (_what, token) => {
    expect(await SessionSocket.refusal(lab().harness, session, { token: await token() })).toEqual({
      status: 401,
      code: 'unauthorized',
    });
  });

  it('is refused for a session that is not here', async () => {
    const unknown = '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b';
    expect(await SessionSocket.refusal(lab().harness, unknown)).toEqual({
      status: 404,
      code: 'session_not_found',
    });
  });

  it.each([['/internal/v1/sandboxes'], ['/internal/v1/sessions/x/ws/more'], ['/']])(
    'of %s is refused',
    async (path) => {
      expect(await SessionSocket.refusal(lab().harness, session, { path })).toMatchObject({
        status: 404,
      });
    },
  );

  it.each(['-1', 'x', '1e3', ''])('after the frame "%s" is refused', async (seq) => {
    const path = `/internal/v1/sessions/${session}/ws?after_seq=${seq}`;
    expect(await SessionSocket.refusal(lab().harness, session, { path })).toEqual({
      status: 400,
      code: 'validation_failed',
    });
  });
});
