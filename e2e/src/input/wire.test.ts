import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { shared } from '../../test/shared-service.ts';

/** Sends bytes over TLS and reads until the service closes the connection. */
async function exchange(bytes: string): Promise<string> {
  const { hostname, port } = new URL(shared.address.baseUrl);
  const socket = connect({
    host: hostname,
    port: Number(port),
    ca: shared.ca,
    servername: hostname,
  });
  socket.setTimeout(60_000, () =>
    socket.destroy(new Error('the service did not close the connection')),
  );
  await once(socket, 'secureConnect');
  socket.write(bytes);
  return text(socket);
}

test.each([
  ['a text that is not HTTP', 'hello\r\n\r\n'],
  ['an unknown method', 'GRAB / HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a header without a colon', 'GET / HTTP/1.1\r\nHost: a\r\nbroken\r\n\r\n'],
  [
    'two content lengths',
    'POST /v1/tenants HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
  ],
  [
    'a content length and chunked encoding',
    'POST /v1/tenants HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  [
    'an invalid content length',
    'POST /v1/tenants HTTP/1.1\r\nHost: a\r\nContent-Length: many\r\n\r\n',
  ],
  ['NUL in a header', 'GET / HTTP/1.1\r\nHost: a\r\nX-A: \0\r\n\r\n'],
])('answers %s with 400 and closes the connection', async (_case, bytes) => {
  const answer = await exchange(bytes);
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(answer).toContain('application/problem+json');
  expect(answer).toContain('"code":"bad_request"');
});

test('the service survives clients that disconnect in the middle of a request', async () => {
  const { hostname, port } = new URL(shared.address.baseUrl);
  for (let n = 0; n < 20; n += 1) {
    const socket = connect({
      host: hostname,
      port: Number(port),
      ca: shared.ca,
      servername: hostname,
    });
    await once(socket, 'secureConnect');
    socket.write(
      'POST /v1/sandboxes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"te',
    );
    socket.destroy();
  }
  expect((await shared.raw({ target: '/healthz' })).status).toBe(200);
});
