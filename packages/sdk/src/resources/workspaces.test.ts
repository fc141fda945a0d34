import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SvcClient } from '../client.ts';

const ID = { appId: 'app', capsetId: 'default' };

interface Seen {
  readonly line: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

let server: Server;
let client: SvcClient;
let origin: string;
const seen: Seen[] = [];

/** Answers with the URL of an upload, and accepts uploads. */
beforeAll(async () => {
  server = createServer(async (request, response) => {
    const body = (await buffer(request)).toString();
    seen.push({ line: `${request.method} ${request.url}`, headers: request.headers, body });
    if (request.url?.startsWith('/v1/') !== true) {
      response.writeHead(request.url === '/full' ? 403 : 200).end();
      return;
    }
    const url = `${origin}/${request.url.includes('full') ? 'full' : 'upload?signature=x'}`;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ url, expires_in: 900 }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  client = new SvcClient({ baseUrl: origin, apiKey: 'token' });
});
afterAll(async () => {
  await client.close();
  server.close();
});

test.each([
  ['text', 'höllo'],
  ['bytes', Buffer.from('höllo')],
  ['a stream', { stream: Readable.from([Buffer.from('höl'), Buffer.from('lo')]), size: 6 }],
])('uploads %s to the URL, with its length and without the credential', async (_case, source) => {
  seen.length = 0;
  await client.workspaces.write(ID, 'a b/ü', source);
  const [asked, sent] = seen;
  expect(asked?.line).toBe('PUT /v1/workspaces/app/default/files/a%20b%2F%C3%BC?size=6');
  expect(asked?.headers.authorization).toBe('Bearer token');
  expect(sent).toMatchObject({ line: 'PUT /upload?signature=x', body: 'höllo' });
  expect(sent?.headers).toMatchObject({ 'content-length': '6' });
  expect(sent?.headers).not.toHaveProperty('authorization');
  expect(sent?.headers).not.toHaveProperty('transfer-encoding');
});

test('fails when the upload is refused', async () => {
  await expect(client.workspaces.write(ID, 'full', 'x')).rejects.toMatchObject({ status: 403 });
});

test.each(['', '.', '..'])(
  'never sends the path %j, which would name something else',
  async (path) => {
    seen.length = 0;
    const refused = { code: 'workspace_path_invalid' };
    await expect(client.workspaces.delete(ID, path)).rejects.toMatchObject(refused);
    await expect(client.workspaces.read(ID, path)).rejects.toMatchObject(refused);
    await expect(client.workspaces.write(ID, path, 'x')).rejects.toMatchObject(refused);
    expect(seen).toEqual([]);
  },
);
