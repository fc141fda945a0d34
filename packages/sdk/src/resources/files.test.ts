import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { SvcClient } from '../client.ts';

const servers: Server[] = [];

/** A client that makes real HTTP requests to a server with this handler. */
async function serving(
  handler: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<SvcClient> {
  const server = createServer(handler).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return new SvcClient({ baseUrl: `http://127.0.0.1:${port}`, apiKey: 'svc_k' });
}

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }
});

/** Responds like the service and records the received bodies. */
function recorder(bodies: Buffer[]) {
  return async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    bodies.push(Buffer.concat(chunks));
    response.setHeader('content-type', 'application/json');
    response.end('{"status":"uploaded"}');
  };
}

test('writes strings, buffers, streams and iterables', async () => {
  const bodies: Buffer[] = [];
  await using client = await serving(recorder(bodies));
  const { files } = client.sandboxes;
  const sources = [
    'hello',
    Buffer.from('hello'),
    Readable.from([Buffer.from('hel'), Buffer.from('lo')]),
    new Blob(['hello']).stream(),
  ];
  for (const source of sources) {
    expect(await files.write('vm_1', '/tmp/a b', source)).toEqual({ status: 'uploaded' });
  }
  expect(bodies.map(String)).toEqual(['hello', 'hello', 'hello', 'hello']);
});

test('reads files whole and as streams with their size', async () => {
  const content = Buffer.alloc(3 * 1024 * 1024, 'x');
  await using client = await serving((request, response) => {
    expect(request.url).toBe('/v1/sandboxes/vm_1/files?path=%2Ftmp%2Fa+b');
    response.setHeader('content-length', content.length);
    response.end(content);
  });
  const { files } = client.sandboxes;
  expect(Buffer.compare(await files.read('vm_1', '/tmp/a b'), content)).toBe(0);
  const { size, stream } = await files.readStream('vm_1', '/tmp/a b');
  expect(size).toBe(content.length);
  let received = 0;
  for await (const chunk of stream) received += chunk.length;
  expect(received).toBe(content.length);
});

test('throws when a file is cut off, instead of returning a part of it', async () => {
  await using client = await serving((_request, response) => {
    response.setHeader('content-length', 1000);
    response.write('only this');
    setImmediate(() => response.destroy());
  });
  await expect(client.sandboxes.files.read('vm_1', '/a')).rejects.toMatchObject({
    code: 'stream_ended',
  });
});

test('never sends a streamed source twice', async () => {
  let requests = 0;
  await using client = await serving((request, response) => {
    requests += 1;
    request.resume();
    request.on('end', () => response.writeHead(503).end());
  });
  const source = Readable.from([Buffer.from('x')]);
  await expect(client.sandboxes.files.write('vm_1', '/a', source)).rejects.toMatchObject({
    status: 503,
  });
  expect(requests).toBe(1);
});
