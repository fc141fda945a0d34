import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type S3Server, startS3Server } from '@svc/s3-server';
import { Secret } from '@svc/service-kit/secret';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { testObjectStoreContract } from '../../test/object-store-contract.ts';
import { testPresignedUrls } from '../../test/presigned-urls.ts';
import type { S3Settings } from './s3-client.ts';
import { openS3ObjectStore } from './s3-object-store.ts';

// The server syncs every write to disk, which takes seconds while other tests write too.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

let server: S3Server;
const signal = () => AbortSignal.timeout(60_000);
const settings = (changes: Partial<S3Settings> = {}): S3Settings => ({
  ...server.settings,
  secretAccessKey: new Secret(server.settings.secretAccessKey),
  ...changes,
});

beforeAll(async () => {
  server = await startS3Server();
});
afterAll(() => server.close());

testObjectStoreContract('an object store in S3', async () => openS3ObjectStore(settings()));
testPresignedUrls('presigned URLs of S3', async () => openS3ObjectStore(settings()));

describe('an S3 store is unavailable', () => {
  const unavailable = { code: 'object_store_unavailable' };
  const open = (changes: Partial<S3Settings>) => openS3ObjectStore(settings(changes));

  test.each([
    ['with the wrong secret', { secretAccessKey: new Secret('wrong') }],
    ['without its bucket', { bucket: 'no-such-bucket' }],
    ['when nobody listens', { endpoint: 'http://127.0.0.1:1' }],
  ])('%s', async (_case, changes) => {
    const store = open(changes);
    await expect(store.ping(signal())).rejects.toMatchObject(unavailable);
    await expect(
      store.put('a', Buffer.from('x'), { size: 1, signal: signal() }),
    ).rejects.toMatchObject(unavailable);
    await expect(store.list({ limit: 1 }, signal())).rejects.toMatchObject(unavailable);
  });

  test('while it answers 500, and repeats a request only a few times', async () => {
    let requests = 0;
    const broken = createServer((_request, response) => {
      requests += 1;
      response.writeHead(500).end();
    });
    await new Promise<void>((resolve) => broken.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = broken.address() as AddressInfo;
      const store = open({ endpoint: `http://127.0.0.1:${port}` });
      await expect(store.head('a', signal())).rejects.toMatchObject(unavailable);
      expect(requests).toBe(4);
    } finally {
      broken.close();
    }
  });

  test('but goes on after a failure of one request', async () => {
    let requests = 0;
    const flaky = createServer((_request, response) => {
      requests += 1;
      if (requests === 1) response.writeHead(503).end();
      else response.writeHead(200, { 'content-length': 0, etag: '"a"' }).end();
    });
    await new Promise<void>((resolve) => flaky.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = flaky.address() as AddressInfo;
      const store = open({ endpoint: `http://127.0.0.1:${port}` });
      await store.put('a', Buffer.from(''), { size: 0, signal: signal() });
      expect(requests).toBe(2);
    } finally {
      flaky.close();
    }
  });

  test('when a silent server is given up by the caller', async () => {
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = silent.address() as AddressInfo;
      const store = open({ endpoint: `http://127.0.0.1:${port}` });
      await expect(store.head('a', AbortSignal.timeout(200))).rejects.toMatchObject({
        name: 'TimeoutError',
      });
    } finally {
      silent.closeAllConnections();
      silent.close();
    }
  });
});
