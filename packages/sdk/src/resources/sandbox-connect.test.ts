import { expect, test } from 'vitest';
import { json, scriptedFetch } from '../../test/scripted-fetch.ts';
import { type Meeting, numbered, ready, scriptedSessions } from '../../test/scripted-sessions.ts';
import { SvcClient } from '../client.ts';
import type { SessionFrame } from '../sessions/frames.ts';

const ID = 'vm_1';
const RECORD = { vm_id: ID, state: 'running', agent_status: 'completed', agent_exit_code: 0 };

/** A client of a service whose sandbox has an agent, and the WebSocket server of the agent. */
async function serviceWith(...meetings: Meeting[]) {
  const server = await scriptedSessions(...meetings);
  const { connect_url, jwt } = server.access;
  const access = { connect_url, jwt, expires_at: '2026-01-01T00:00:00.000Z' };
  const { fetch, seen } = scriptedFetch(json(200, access), json(200, RECORD));
  const client = new SvcClient({ baseUrl: 'http://service', apiKey: 'k', fetch });
  return { client, server, seen };
}

test('connects to the agent of a sandbox, until the agent exits', async () => {
  const { client, server, seen } = await serviceWith((socket) => {
    socket.send(ready(2));
    for (const seq of [1, 2]) socket.send(numbered(seq));
    socket.close(1000, 'agent exited');
  });
  const connection = await client.sandboxes.connect(ID, { afterSeq: 0 });
  const frames: SessionFrame[] = [];
  for await (const frame of connection) frames.push(frame);
  expect(frames.map(({ type }) => type)).toEqual(['ready', 'text_delta', 'text_delta']);
  expect(await connection.closed).toEqual({ code: 1000, reason: 'agent exited' });
  expect(seen.map(({ method, url }) => `${method} ${url.pathname}`)).toEqual([
    `POST /v1/sandboxes/${ID}/connect`,
  ]);
  expect(server.seen[0]).toMatchObject({ authorization: `Bearer ${server.access.jwt}` });
  expect(server.seen[0]?.url.searchParams.get('after_seq')).toBe('0');
  await server.close();
});

test('says that the agent has ended when it cannot be reached any more', async () => {
  const { client, server } = await serviceWith((socket) => socket.close(1011));
  const connection = await client.sandboxes.connect(ID);
  await expect(connection[Symbol.asyncIterator]().next()).rejects.toMatchObject({
    code: 'agent_ended',
    status: 0,
  });
  await server.close();
});
