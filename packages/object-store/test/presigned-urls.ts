import { randomBytes, randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { beforeAll, describe, expect, test } from 'vitest';
import type { ObjectStore } from '../src/object-store.ts';

const OPERATION_MS = 60_000;

/** Tests that presigned URLs do what they are signed for, and nothing else. `open` returns a store whose URLs work. */
export function testPresignedUrls(name: string, open: () => Promise<ObjectStore>): void {
  describe(name, () => {
    let store: ObjectStore;
    const signal = () => AbortSignal.timeout(OPERATION_MS);
    const newKey = () => `presigned/${randomUUID()}/file`;
    const request = (url: string, init: RequestInit = {}) =>
      fetch(url, { signal: signal(), redirect: 'manual', ...init });
    const upload = (url: string, body: string | Uint8Array<ArrayBuffer>) =>
      request(url, { method: 'PUT', body });
    const content = async (key: string) =>
      (await buffer((await store.get(key, { signal: signal() })).body)).toString();
    const stored = async (text: string) => {
      const key = newKey();
      await store.put(key, Buffer.from(text), { size: text.length, signal: signal() });
      return key;
    };

    beforeAll(async () => {
      store = await open();
    });

    test('upload and download an object', async () => {
      const key = newKey();
      const bytes = randomBytes(3 * 1024 * 1024 + 1);
      const put = await upload(await store.presignPut(key), bytes);
      expect(put.status, await put.text()).toBe(200);
      const got = await request(await store.presignGet(key));
      expect(got.status).toBe(200);
      expect(got.headers.get('content-length')).toBe(String(bytes.length));
      expect(Buffer.from(await got.arrayBuffer()).equals(bytes)).toBe(true);
    });

    test('replace an object as a whole', async () => {
      const key = await stored('old');
      expect((await upload(await store.presignPut(key), 'new')).status).toBe(200);
      expect(await content(key)).toBe('new');
    });

    test('download an object as an attachment of no particular type', async () => {
      const response = await request(await store.presignGet(await stored('<script>')));
      expect(response.headers.get('content-disposition')).toMatch(/^attachment/);
      expect(response.headers.get('content-type')).toBe('application/octet-stream');
    });

    test('download ranges', async () => {
      const url = await store.presignGet(await stored('0123456789'));
      const range = async (text: string) => {
        const response = await request(url, { headers: { range: text } });
        const [status, part] = [response.status, response.headers.get('content-range')];
        return [status, part, status < 300 ? await response.text() : ''];
      };
      expect(await range('bytes=2-4')).toEqual([206, 'bytes 2-4/10', '234']);
      expect(await range('bytes=7-')).toEqual([206, 'bytes 7-9/10', '789']);
      expect(await range('bytes=-2')).toEqual([206, 'bytes 8-9/10', '89']);
      expect(await range('bytes=8-99')).toEqual([206, 'bytes 8-9/10', '89']);
      expect((await range('bytes=10-'))[0]).toBe(416);
    });

    test('say when the object does not exist', async () => {
      const response = await request(await store.presignGet(newKey()));
      expect(response.status).toBe(404);
    });

    test('refuse another method', async () => {
      const key = await stored('old');
      const [get, put] = [await store.presignGet(key), await store.presignPut(key)];
      expect((await upload(get, 'new')).status).toBe(403);
      expect((await request(put)).status).toBe(403);
      for (const url of [get, put]) {
        for (const method of ['DELETE', 'POST', 'HEAD']) {
          expect((await request(url, { method })).status).toBeGreaterThanOrEqual(400);
        }
      }
      expect(await content(key)).toBe('old');
    });

    test('refuse another path', async () => {
      const [mine, theirs] = [await stored('mine'), await stored('theirs')];
      const url = await store.presignGet(mine);
      const paths = [theirs, theirs.replaceAll('/', '%2F'), `${mine}/../../${theirs}`, `${mine}/`];
      for (const path of paths) {
        const response = await request(url.replace(mine, path));
        expect(response.status, path).toBeGreaterThanOrEqual(400);
        expect(await response.text()).not.toContain('theirs');
      }
    });

    test('refuse forged and truncated signatures and no query', async () => {
      const url = new URL(await store.presignGet(await stored('secret')));
      const name = [...url.searchParams.keys()].find((key) => /signature/i.test(key)) ?? '';
      const signature = url.searchParams.get(name) ?? '';
      const swapped = signature.startsWith('0') ? '1' : '0';
      for (const forged of [
        `${swapped}${signature.slice(1)}`,
        signature.slice(0, -1),
        signature.slice(0, 1),
        `${signature}0`,
        '',
      ]) {
        url.searchParams.set(name, forged);
        expect((await request(url.href)).status, forged).toBe(403);
      }
      url.search = '';
      expect((await request(url.href)).status).toBeGreaterThanOrEqual(400);
    });

    test('refuse a later expiry', async () => {
      const url = new URL(await store.presignGet(await stored('secret')));
      for (const [key, value] of url.searchParams) {
        if (/expires/i.test(key)) url.searchParams.set(key, String(Number(value) + 1));
      }
      expect((await request(url.href)).status).toBe(403);
    });

    test('expire', async () => {
      const key = await stored('old');
      const get = await store.presignGet(key, { expiresSeconds: 1 });
      const put = await store.presignPut(key, { expiresSeconds: 1 });
      await expect.poll(async () => (await request(get)).status).toBe(403);
      await expect.poll(async () => (await upload(put, 'old')).status).toBe(403);
    });

    test('accept only the size that they were signed for', async () => {
      const key = newKey();
      const url = await store.presignPut(key, { size: 5 });
      for (const body of ['', 'four', 'sixsix']) {
        expect((await upload(url, body)).status, body).toBeGreaterThanOrEqual(400);
      }
      expect(await store.head(key, signal())).toBeUndefined();
      expect((await upload(url, 'fives')).status).toBe(200);
      expect(await content(key)).toBe('fives');
    });

    test('accept an empty object', async () => {
      const key = newKey();
      const url = await store.presignPut(key, { size: 0 });
      expect((await upload(url, '')).status).toBe(200);
      expect(await store.head(key, signal())).toMatchObject({ size: 0 });
    });
  });
}
