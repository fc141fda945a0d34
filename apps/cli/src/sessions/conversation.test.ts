import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type SessionFrame, SvcClient } from '@svc/sdk';
import { afterEach, expect, test } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { Conversation } from './conversation.ts';

type Received = { readonly type: string; readonly id: string };

const cleanUp: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of cleanUp.splice(0).reverse()) await end();
});

/**
 * A conversation with a session whose machine is lost as soon as it gets a frame. The next start of the session first
 * replays `saved`, and completes every task.
 */
async function losingConversation(saved: (id: string) => readonly object[] = () => []) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const received: Received[][] = [];
  server.on('connection', (socket: WebSocket) => {
    const generation = received.push([]);
    const send = (frame: object) => socket.send(JSON.stringify({ ...frame, ts: 'now' }));
    const frames = saved(received[0]?.[0]?.id ?? '');
    const last = generation === 1 ? {} : { last_seq: 1_000, previous_seq: frames.length };
    send({ type: 'ready', model: 'm', resumed: generation > 1, generation, last_seq: 0, ...last });
    const replayed = generation === 1 ? [] : frames;
    for (const [index, frame] of replayed.entries()) send({ ...frame, seq: index + 1 });
    socket.on('error', () => undefined);
    socket.on('message', (data) => {
      const frame: Received = JSON.parse(data.toString());
      received.at(-1)?.push(frame);
      if (generation === 1) socket.close(1011, 'upstream unavailable');
      else if (frame.type === 'task') send(completed(frame.id, { seq: 1_001, previous_seq: 0 }));
    });
  });
  const client = new SvcClient({ baseUrl: 'http://127.0.0.1:1', maxRetries: 0 });
  const { port } = server.address() as AddressInfo;
  const connection = client.sessions.connect({
    chat_session_id: 's',
    connect_url: `ws://127.0.0.1:${port}/v1/sessions/s/ws`,
    jwt: 'token',
  });
  cleanUp.push(
    async () => server.close(),
    () => connection.close(),
  );
  const shown: SessionFrame[] = [];
  const conversation = new Conversation(connection, (frame) => shown.push(frame));
  await conversation.ready;
  return { conversation, received, shown };
}

function completed(id: string, numbers: object = {}): object {
  return { type: 'task_completed', id, status: 'completed', result: '', ...numbers };
}

test('gives a task again when the machine that had it is lost', async () => {
  const { conversation, received } = await losingConversation();
  expect(await conversation.task('work')).toBe('completed');
  const task = { type: 'task', prompt: 'work', id: received[0]?.[0]?.id };
  expect(received).toEqual([[task], [task]]);
});

test('does not give a task again that was completed and saved, though not seen, before the loss', async () => {
  const { conversation, received, shown } = await losingConversation((id) => [
    { type: 'text_delta', data: 'done' },
    completed(id),
  ]);
  expect(await conversation.task('work')).toBe('completed');
  await expect.poll(() => shown.at(-1)).toMatchObject({ type: 'ready', generation: 2 });
  expect(received[1]).toEqual([]);
});

test('does not repeat a command, or a task that was interrupted, after the loss of their machine', async () => {
  const { conversation, received, shown } = await losingConversation();
  expect(await conversation.exec('make')).toBe('failed');
  expect(shown.at(-1)).toMatchObject({ type: 'error', code: 'command_lost' });
  expect(received[1]).toEqual([]);

  const other = await losingConversation();
  const outcome = other.conversation.task('work');
  other.conversation.interrupt();
  expect(await outcome).toBe('interrupted');
  expect(other.received[1]).toEqual([]);
});
