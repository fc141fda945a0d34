import { createHash, randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ServerFrame } from '@svc/contract';
import { until } from '@svc/service-driver';
import type { SessionClient } from './session-client.ts';
import type { SessionFixture } from './session-fixture.ts';

/** Too much for a row of the database, so that it goes to the object store. */
const ANSWER = Array.from({ length: 24 }, (_, part) => `${part} ${'words '.repeat(680)}\n`);

/** A model that answers every `turn …` with 100 KiB. */
export const LARGE_TURNS = {
  rules: [{ when: { user: '(turn \\w+)' }, reply: { text: [...ANSWER, 'the end of $1'] } }],
};

/** Files that do not compress, many small ones, and names and kinds that an archive could lose. */
const CHANGE_HOME = `set -e; mkdir -p large/dir && cd large && rm -rf link dir/* && head -c 3000000 /dev/urandom > bytes
  for i in $(seq 40); do head -c 2000 /dev/urandom > "dir/$i $RANDOM"; done
  ln -s "dir/$(ls dir | head -n 1)" link; printf x >> "$(printf 'odd \\377 name')"; chmod 0$((RANDOM % 2 + 6))40 bytes`;
const LIST_HOME = `
  kept() { find . -path ./.cache -prune -o -path ./.npm -prune -o "$@" | LC_ALL=C sort; }
  kept -printf '%y %m %u %s %.10T@ %p %l\\n' && kept -type f -exec sha256sum {} +`;

/** Writes 3 MB of other files into the home of the client's agent. */
export async function changeHome(client: SessionClient): Promise<void> {
  await run(client, CHANGE_HOME);
}

/** The kind, mode, owner, size, time and name of everything in the home of the client's agent, and digests of its files. */
export async function listHome(client: SessionClient): Promise<string> {
  return run(client, LIST_HOME);
}

/** Runs a command as the agent, after its files have been restored. */
async function run(client: SessionClient, command: string): Promise<string> {
  const from = client.frames.length;
  const id = randomUUID();
  client.connection.exec(`cd && { ${command}\n}`, { id });
  const { exit_code } = await client.until('exit', (frame) => frame.id === id, from);
  const output = client.frames
    .slice(from)
    .map((frame) => (frame.type === 'stdout' && frame.id === id ? frame.data : ''));
  if (exit_code !== 0) throw new Error(`${command} failed: ${client.summary()}`);
  return output.join('').trim();
}

/** The messages that the model was given before a prompt, each with a digest of its text. */
export function conversationBefore(fixture: SessionFixture, prompt: string): string[] {
  const request = fixture.models.requests.findLast(({ body }) =>
    JSON.stringify(body).includes(prompt),
  );
  if (request === undefined) throw new Error(`the model was not asked: ${prompt}`);
  const { messages } = request.body as { messages: { role: string; content: unknown }[] };
  return messages.slice(0, -1).map(({ role, content }) => messageOf(role, textOf(content)));
}

/** A completed turn, as {@link conversationBefore} gives it. */
export function turnMessages(prompt: string): string[] {
  return [
    messageOf('user', prompt),
    messageOf('assistant', `${ANSWER.join('')}the end of ${prompt}`),
  ];
}

/** The frames of a client that have a number, by their number. */
export function numbered(client: SessionClient): Map<number, ServerFrame> {
  return new Map(
    client.frames.flatMap((frame) => (frame.seq === undefined ? [] : [[frame.seq, frame]])),
  );
}

/** Counts the objects in the store of a service from now on. */
export async function watchObjects(dataDir: string) {
  const count = async () => {
    const all = await readdir(join(dataDir, 'objects'), { recursive: true, withFileTypes: true });
    return all.filter((entry) => entry.isFile()).length;
  };
  const before = await count();
  return {
    /** Waits until there are this many more. */
    more: (number: number) =>
      until(`${number} more objects are stored`, async () => (await count()) >= before + number, {
        intervalMs: 5,
      }),
  };
}

function messageOf(role: string, text: string): string {
  return `${role} ${createHash('sha256').update(text).digest('hex')}`;
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return (content as { text?: string }[]).map(({ text = '' }) => text).join('');
}
