import type { SessionAccess } from '@svc/contract';
import { LIMITS } from '@svc/contract';
import { beforeAll, describe, expect, test } from 'vitest';
import { RawSocket, refusedUpgrade } from '../../test/sessions/raw-socket.ts';
import { textOf } from '../../test/sessions/session-client.ts';
import { useSessionFixture } from '../../test/sessions/session-fixture.ts';
import { shared } from '../../test/shared-service.ts';

const fixture = useSessionFixture({ rules: [] });
let session: SessionAccess;
let other: SessionAccess;
beforeAll(async () => {
  [session, other] = await Promise.all([fixture().create('deictic'), fixture().create('deictic')]);
});

describe('an upgrade is refused', () => {
  const refused = async (url: string, headers: Record<string, string> = {}) => {
    const { status, body } = await refusedUpgrade(shared, url, headers);
    return { status, code: JSON.parse(body).code as string };
  };
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const unknownUrl = () =>
    session.connect_url.replace(session.chat_session_id, '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b');

  test('without a token, with a garbled one, and with an API key', async () => {
    const { connect_url: url } = session;
    const unauthorized = { status: 401, code: 'unauthorized' };
    expect(await refused(url)).toEqual(unauthorized);
    expect(await refused(`${url}?token=garbage`)).toEqual(unauthorized);
    expect(await refused(url, bearer(`${session.jwt}x`))).toEqual(unauthorized);
    expect(await refused(url, bearer(fixture().account.apiKey))).toEqual(unauthorized);
    expect(await refused(url, bearer(fixture().account.token))).toEqual(unauthorized);
  });

  test('with the token of another session', async () => {
    expect((await refused(session.connect_url, bearer(other.jwt))).status).toBe(403);
    // For an unknown session every token is invalid.
    expect((await refused(unknownUrl(), bearer(session.jwt))).status).toBe(401);
  });
});

describe('a hostile client', () => {
  test.each([
    ['text that is not JSON', 'hello', 'frame_invalid'],
    ['JSON that is not an object', '[1]', 'frame_invalid'],
    ['an unknown type', '{"type":"sudo"}', 'frame_invalid'],
    [
      'a frame that only the service may send',
      '{"type":"usage","input_tokens":1}',
      'frame_invalid',
    ],
    ['a task without a prompt', '{"type":"task"}', 'frame_invalid'],
    ['deep nesting', `{"type":"task","prompt":${'['.repeat(100_000)}`, 'frame_invalid'],
    [
      'a frame one byte over the limit',
      JSON.stringify('x'.repeat(LIMITS.clientFrameBytes - 1)),
      'frame_too_large',
    ],
  ])('gets an error for %s, and stays connected', async (_name, frame, code) => {
    await using socket = await RawSocket.open(shared, session);
    socket.send(frame);
    await socket.until({ type: 'error', code });
    socket.send('{"type":"ping"}');
    await socket.until({ type: 'pong' });
  });

  test('gets an error for a binary frame, and stays connected', async () => {
    await using socket = await RawSocket.open(shared, session);
    socket.send(Buffer.from('{"type":"ping"}'), { binary: true });
    await socket.until({ type: 'error', code: 'frame_binary' });
    socket.send('{"type":"ping"}');
    await socket.until({ type: 'pong' });
  });

  test('that sends ten thousand frames at once does not affect other sessions', async () => {
    const neighbour = await fixture().attach(other);
    {
      await using socket = await RawSocket.open(shared, session);
      for (let count = 0; count < 10_000; count += 1) socket.send('{"type":"interrupt"}');
      await socket.sent('{"type":"interrupt"}');
      await socket.until({ type: 'error', code: 'frame_rate' });
      expect(textOf(await neighbour.task('Are you well?', 'n'))).toContain('Are you well?');
    }
    const client = await fixture().attach(session);
    expect(textOf(await client.task('And you?', 'o'))).toContain('And you?');
  });
});

test('a destroyed sandbox closes its clients with 1001', async () => {
  const doomed = await fixture().create('deictic');
  await using socket = await RawSocket.open(shared, doomed);
  await fixture().account.client.sandboxes.delete(await fixture().sandboxOf(doomed));
  expect(await socket.closed).toEqual({ code: 1001, reason: 'sandbox destroyed' });
  expect(await fixture().sessions.get(doomed.chat_session_id)).toMatchObject({
    status: 'completed',
  });
});

test('a cancel reaches the attached client', async () => {
  await using socket = await RawSocket.open(shared, session);
  await socket.until({ type: 'ready' });
  const vmId = await fixture().sandboxOf(session);
  expect(await fixture().account.client.sandboxes.cancel(vmId, 'admin_action')).toMatchObject({
    cancelled: true,
    reason: 'admin_action',
  });
  await socket.until({ type: 'system', event: 'cancel', reason: 'admin_action' });
});
