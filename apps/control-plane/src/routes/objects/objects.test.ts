import { readdir } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { type ObjectStore, openFsObjectStore, SignedUrls } from '@svc/object-store';
import { testPresignedUrls } from '@svc/object-store/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLUSTER_SECRET, Harness } from '../../../test/harness.ts';
import { ClusterSecrets } from '../../crypto/cluster-secrets.ts';

const UPLOAD_BYTES = 4 * 1024 * 1024;

let harness: Harness;
let store: ObjectStore;
const signal = () => AbortSignal.timeout(60_000);

beforeAll(async () => {
  harness = await Harness.start({ SVC_LIMIT_UPLOAD_BYTES: String(UPLOAD_BYTES) });
  store = await openFsObjectStore({
    directory: join(harness.dataDir, 'objects'),
    urls: new SignedUrls(
      (await ClusterSecrets.open([CLUSTER_SECRET])).keysFor('svc object URLs v1'),
      () => harness.plane.url,
    ),
  });
});
afterAll(() => harness[Symbol.asyncDispose]());

testPresignedUrls('presigned URLs of the control plane', async () => store);

describe('the control plane', () => {
  test('serves a hosted page so that it cannot act as one of its own', async () => {
    const page = Buffer.from('<script>alert(document.domain)</script>');
    await store.put('page.html', page, { size: page.length, signal: signal() });
    const response = await fetch(await store.presignGet('page.html'));
    expect(await response.text()).toBe(page.toString());
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-disposition': 'attachment',
      'content-security-policy': expect.stringMatching(/default-src 'none'.*sandbox/),
      'content-type': 'application/octet-stream',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(response.headers.has('access-control-allow-origin')).toBe(false);
  });

  test('resumes a download only of the same content', async () => {
    const put = (text: string) =>
      store.put('part', Buffer.from(text), { size: text.length, signal: signal() });
    await put('0123456789');
    const url = await store.presignGet('part');
    const etag = (await fetch(url)).headers.get('etag') ?? '';
    const rest = () => fetch(url, { headers: { range: 'bytes=5-', 'if-range': etag } });
    expect(await (await rest()).text()).toBe('56789');
    await put('abcdefghij');
    const changed = await rest();
    expect([changed.status, await changed.text()]).toEqual([200, 'abcdefghij']);
  });

  test('refuses with problems', async () => {
    await store.put('a', Buffer.from('x'), { size: 1, signal: signal() });
    const url = await store.presignGet('a');
    const problem = async (href: string, init: RequestInit = {}) => {
      const response = await fetch(href, init);
      expect(response.headers.get('content-type')).toBe('application/problem+json');
      const { status, code } = (await response.json()) as Record<string, unknown>;
      expect(response.status).toBe(status);
      return code;
    };
    expect(await problem(`${url}0`)).toBe('object_url_invalid');
    expect(await problem(await store.presignGet('a', { expiresSeconds: -1 }))).toBe(
      'object_url_expired',
    );
    expect(await problem(await store.presignGet('none'))).toBe('object_not_found');
    expect(await problem(url, { headers: { range: 'bytes=1-' } })).toBe('range_not_satisfiable');
    expect(await problem(url, { method: 'DELETE' })).toBe('method_not_allowed');
    expect(await problem(`${harness.plane.url}/objects/../a`)).toBe('route_not_found');
    for (const path of ['', 'a//b', '..%2Fa', '%2e%2e/a', 'a%00']) {
      expect(
        await problem(`${harness.plane.url}/objects/${path}?signature=x&expires=9`),
        path,
      ).toBe(path === '%2e%2e/a' ? 'route_not_found' : 'object_url_invalid');
    }
    const put = await store.presignPut('b', { size: 3 });
    expect(await problem(put, { method: 'PUT', body: 'four' })).toBe('object_size_mismatch');
  });

  test('limits uploads to its setting, and to a declared length', async () => {
    const url = await store.presignPut('large');
    const tooLarge = await fetch(url, { method: 'PUT', body: Buffer.alloc(UPLOAD_BYTES + 1) });
    expect(tooLarge.status).toBe(413);
    const unknown = await fetch(url, {
      method: 'PUT',
      body: new Blob(['x']).stream(),
      duplex: 'half',
    } as RequestInit);
    expect(unknown.status).toBe(411);
    expect(await store.head('large', signal())).toBeUndefined();
  });

  test('keeps nothing of an upload that breaks off', async () => {
    const url = new URL(await store.presignPut('broken'));
    const upload = httpRequest(url, { method: 'PUT', headers: { 'content-length': 1000 } });
    const ended = new Promise((resolve) => upload.once('error', resolve));
    const incoming = async () => (await readdir(join(harness.dataDir, 'objects/incoming'))).length;
    upload.write('part');
    await expect.poll(incoming).toBe(1);
    upload.destroy();
    await ended;
    await expect.poll(incoming).toBe(0);
    expect(await store.head('broken', signal())).toBeUndefined();
  });

  test('honours the URLs of another control plane', async () => {
    await store.put('shared', Buffer.from('x'), { size: 1, signal: signal() });
    const other = await harness.startAnother();
    try {
      const url = (await store.presignGet('shared')).replace(harness.plane.url, other.url);
      expect((await fetch(url)).status).toBe(200);
    } finally {
      await other.close();
    }
  });
});
