import { randomBytes, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ObjectInfo, ObjectRange, ObjectStore } from '../src/object-store.ts';

const MIB = 1024 * 1024;
const OPERATION_MS = 120_000;

/** Tests that a driver fulfils the contract of an object store. `open` opens it once, for all tests. */
export function testObjectStoreContract(name: string, open: () => Promise<ObjectStore>): void {
  describe(name, () => {
    let store: ObjectStore;
    const signal = () => AbortSignal.timeout(OPERATION_MS);
    /** A prefix that no other test uses. */
    const folder = () => `contract/${randomUUID()}/`;

    const put = (key: string, content: string | Uint8Array) => {
      const bytes = Buffer.from(content);
      return store.put(key, bytes, { size: bytes.length, signal: signal() });
    };
    const read = async (key: string, range?: ObjectRange) => {
      const found = await store.get(key, { range, signal: signal() });
      return { ...found, content: await buffer(found.body) };
    };
    const text = async (key: string, range?: ObjectRange) =>
      (await read(key, range)).content.toString();
    const keysOf = (objects: readonly ObjectInfo[], prefix: string) =>
      objects.map(({ key }) => key.slice(prefix.length));
    const keysUnder = async (prefix: string) =>
      keysOf((await store.list({ prefix, limit: 1000 }, signal())).objects, prefix);

    beforeAll(async () => {
      store = await open();
    });
    afterAll(() => store[Symbol.asyncDispose]());

    test('answers a ping', async () => {
      await store.ping(signal());
    });

    test('returns what was stored, with its size, time and a tag of its content', async () => {
      const key = `${folder()}a`;
      const before = Date.now();
      await put(key, 'hello');
      const found = await read(key);
      expect(found).toMatchObject({ key, size: 5, first: 0, length: 5 });
      expect(found.content.toString()).toBe('hello');
      const info = await store.head(key, signal());
      expect(info).toEqual({ key, size: 5, modifiedAt: expect.any(Date), etag: found.etag });
      // S3 rounds to seconds, and its clock is another one.
      expect(Math.abs((info?.modifiedAt.getTime() ?? 0) - before)).toBeLessThan(OPERATION_MS);
      await put(key, 'world');
      expect(await text(key)).toBe('world');
      expect((await store.head(key, signal()))?.etag).not.toBe(found.etag);
    });

    test('stores empty objects', async () => {
      const key = `${folder()}empty`;
      await put(key, '');
      expect(await text(key)).toBe('');
      expect(await store.head(key, signal())).toMatchObject({ size: 0 });
      await expect(read(key, { first: 0 })).rejects.toMatchObject({ code: 'object_range_invalid' });
    });

    test('streams large objects in and out', async () => {
      const key = `${folder()}large`;
      const content = randomBytes(20 * MIB + 7);
      const chunks = Array.from({ length: 21 }, (_, i) => content.subarray(i * MIB, (i + 1) * MIB));
      await store.put(key, Readable.from(chunks), { size: content.length, signal: signal() });
      expect((await read(key)).content.equals(content)).toBe(true);
      const part = await read(key, { first: 9 * MIB - 3, last: 9 * MIB + 2 });
      expect(part).toMatchObject({ size: content.length, first: 9 * MIB - 3, length: 6 });
      expect(part.content.equals(content.subarray(9 * MIB - 3, 9 * MIB + 3))).toBe(true);
    });

    test('reads ranges', async () => {
      const key = `${folder()}digits`;
      await put(key, '0123456789');
      expect(await text(key, { first: 0, last: 0 })).toBe('0');
      expect(await text(key, { first: 3, last: 5 })).toBe('345');
      expect(await text(key, { first: 7 })).toBe('789');
      expect(await text(key, { first: 8, last: 99 })).toBe('89');
      expect(await text(key, { suffix: 2 })).toBe('89');
      expect(await text(key, { suffix: 99 })).toBe('0123456789');
      expect(await read(key, { suffix: 2 })).toMatchObject({ size: 10, first: 8, length: 2 });
      for (const range of [{ first: 10 }, { first: 99, last: 100 }]) {
        await expect(read(key, range)).rejects.toMatchObject({ code: 'object_range_invalid' });
      }
    });

    test('says when an object does not exist', async () => {
      const key = `${folder()}none`;
      expect(await store.head(key, signal())).toBeUndefined();
      await expect(read(key)).rejects.toMatchObject({ code: 'object_not_found' });
      await put(key, 'x');
      await expect(read(`${key}/below`)).rejects.toMatchObject({ code: 'object_not_found' });
      expect(await store.head(`${key}/below`, signal())).toBeUndefined();
    });

    test.each([
      ['longer', 4],
      ['shorter', 6],
    ])('keeps nothing of a body that is %s than announced', async (_case, size) => {
      const key = `${folder()}a`;
      await put(key, 'old');
      for (const body of [Buffer.from('hello'), Readable.from([Buffer.from('hello')])]) {
        await expect(store.put(key, body, { size, signal: signal() })).rejects.toMatchObject({
          code: 'object_size_mismatch',
        });
      }
      expect(await text(key)).toBe('old');
    });

    test('keeps nothing of a body that breaks off, and passes its error on', async () => {
      const key = `${folder()}a`;
      async function* broken() {
        yield randomBytes(6 * MIB);
        throw new Error('broken off');
      }
      const failed = store.put(key, Readable.from(broken()), { size: 12 * MIB, signal: signal() });
      await expect(failed).rejects.toThrow('broken off');
      expect(await store.head(key, signal())).toBeUndefined();
    });

    test('keeps nothing of a put that is cancelled, and destroys its body', async () => {
      const key = `${folder()}a`;
      const cancel = new AbortController();
      const body = new Readable({ read: () => undefined });
      body.push(Buffer.alloc(10));
      const failed = store.put(key, body, { size: 20, signal: cancel.signal });
      cancel.abort(new Error('cancelled'));
      await expect(failed).rejects.toThrow('cancelled');
      expect(body.destroyed).toBe(true);
      expect(await store.head(key, signal())).toBeUndefined();
    });

    test('does nothing once its signal has aborted', async () => {
      const key = `${folder()}a`;
      await put(key, 'x');
      const gone = AbortSignal.abort(new Error('gone'));
      const body = Buffer.from('y');
      await expect(store.put(key, body, { size: 1, signal: gone })).rejects.toThrow('gone');
      await expect(store.get(key, { signal: gone })).rejects.toThrow('gone');
      await expect(store.head(key, gone)).rejects.toThrow('gone');
      await expect(store.list({ limit: 1 }, gone)).rejects.toThrow('gone');
      await expect(store.delete([key], gone)).rejects.toThrow('gone');
      await expect(store.deletePrefix('contract/', gone)).rejects.toThrow('gone');
      expect(await text(key)).toBe('x');
    });

    test('lets readers finish the object that they opened', async () => {
      const key = `${folder()}a`;
      const old = Buffer.alloc(MIB, 'a');
      await put(key, old);
      const opened = await store.get(key, { signal: signal() });
      await put(key, Buffer.alloc(MIB, 'b'));
      const content = await buffer(opened.body);
      expect(content.equals(old)).toBe(true);
    });

    test('shows either of two concurrent puts whole', async () => {
      const key = `${folder()}a`;
      const bodies = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(64 * 1024));
      await Promise.all(bodies.map((body) => put(key, body)));
      expect(bodies).toContain(await text(key));
    });

    test('lists keys in the order of their bytes, page by page', async () => {
      const prefix = folder();
      const names = ['a', 'a-b', 'a.b', 'a/b', 'a/c/d', 'a0', 'B', 'b', 'é', '😀', '\uFFFD'];
      const sorted = names.toSorted((x, y) => Buffer.compare(Buffer.from(x), Buffer.from(y)));
      await Promise.all(names.map((name) => put(prefix + name, name)));
      expect(await keysUnder(prefix)).toEqual(sorted);
      const seen: string[] = [];
      let pages = 0;
      for (let after: string | undefined; ; pages += 1) {
        const page = await store.list({ prefix, after, limit: 3 }, signal());
        expect(page.objects.length).toBeLessThanOrEqual(3);
        seen.push(...keysOf(page.objects, prefix));
        after = page.next;
        if (after === undefined) break;
      }
      expect(seen).toEqual(sorted);
      expect(pages).toBe(3);
      const [first] = (await store.list({ prefix, limit: 1 }, signal())).objects;
      expect(first).toEqual(await store.head(`${prefix}B`, signal()));
    });

    test('goes on after a key that does not exist', async () => {
      const prefix = folder();
      for (const name of ['a', 'b/1', 'b/3', 'c']) await put(prefix + name, name);
      const after = async (key: string) =>
        keysOf(
          (await store.list({ prefix, after: prefix + key, limit: 9 }, signal())).objects,
          prefix,
        );
      expect(await after('b')).toEqual(['b/1', 'b/3', 'c']);
      expect(await after('b/2')).toEqual(['b/3', 'c']);
      expect(await after('b/3')).toEqual(['c']);
      expect(await after('d')).toEqual([]);
    });

    test('lists only keys with the whole prefix', async () => {
      const prefix = folder();
      for (const name of ['a/1', 'ab/1', 'a']) await put(prefix + name, name);
      expect(await keysUnder(`${prefix}a/`)).toEqual(['1']);
      expect(await store.list({ prefix: folder(), limit: 5 }, signal())).toEqual({ objects: [] });
    });

    test('keeps keys apart that differ in case, in encoding or in a separator', async () => {
      const prefix = folder();
      const names = [
        'Key',
        'key',
        'KEY',
        'k%65y',
        'k/ey',
        'k\\ey',
        'ké',
        'ke\u0301',
        ' k',
        'k ',
        'k.o',
      ];
      for (const name of names) await put(prefix + name, `content of ${name}`);
      for (const name of names) expect(await text(prefix + name)).toBe(`content of ${name}`);
      expect((await keysUnder(prefix)).toSorted()).toEqual(names.toSorted());
    });

    test.each([
      '',
      '/',
      '/a',
      'a/',
      'a//b',
      '.',
      '..',
      'a/../b',
      '../a',
      'a/..',
      './a',
      'a\0b',
      'a\nb',
      '\ud800',
      'x'.repeat(81),
      Array(10).fill('x'.repeat(60)).join('/'),
    ])('refuses the key %j', async (key) => {
      const invalid = { code: 'object_key_invalid' };
      await expect(put(key, 'x')).rejects.toMatchObject(invalid);
      await expect(read(key)).rejects.toMatchObject(invalid);
      await expect(store.head(key, signal())).rejects.toMatchObject(invalid);
      await expect(store.delete([key], signal())).rejects.toMatchObject(invalid);
      await expect(store.presignGet(key)).rejects.toMatchObject(invalid);
      await expect(store.presignPut(key)).rejects.toMatchObject(invalid);
    });

    test.each(['', 'a', '../', '/', 'a//'])('refuses to delete the prefix %j', async (prefix) => {
      await expect(store.deletePrefix(prefix, signal())).rejects.toMatchObject({
        code: 'object_key_invalid',
      });
    });

    test('accepts the longest key and component', async () => {
      const prefix = folder();
      const long = 'é'.repeat(40);
      const key = prefix + [long, long, long, long, long].join('/');
      await put(key, 'x');
      expect(await keysUnder(prefix)).toEqual([key.slice(prefix.length)]);
    });

    test('copies an object, unless it has changed', async () => {
      const prefix = folder();
      const [from, to] = [`${prefix}a b/é`, `${prefix}copy`];
      await put(from, 'one');
      await put(to, 'old');
      const etag = (await store.head(from, signal()))?.etag ?? '';
      await store.copy(from, to, { etag, signal: signal() });
      await store.copy(from, to, { etag, signal: signal() });
      expect(await text(to)).toBe('one');
      await put(from, 'two');
      expect(await text(to)).toBe('one');
      const copy = store.copy(from, to, { etag, signal: signal() });
      await expect(copy).rejects.toMatchObject({ code: 'object_changed' });
      await store.delete([from], signal());
      const gone = store.copy(from, to, { etag, signal: signal() });
      await expect(gone).rejects.toMatchObject({ code: 'object_not_found' });
      expect(await text(to)).toBe('one');
    });

    test('deletes objects, as often as asked', async () => {
      const prefix = folder();
      for (const name of ['a', 'b/c', 'b/d']) await put(prefix + name, name);
      const keys = ['a', 'b/c', 'none'].map((name) => prefix + name);
      await store.delete(keys, signal());
      await store.delete(keys, signal());
      await store.delete([], signal());
      expect(await keysUnder(prefix)).toEqual(['b/d']);
    });

    test('deletes a prefix, and nothing beside it', async () => {
      const prefix = folder();
      const names = Array.from({ length: 30 }, (_, i) => `a/${i % 3}/${i}`);
      await Promise.all([...names, 'a', 'ab/1'].map((name) => put(prefix + name, name)));
      await store.deletePrefix(`${prefix}a/`, signal());
      await store.deletePrefix(`${prefix}a/`, signal());
      expect(await keysUnder(prefix)).toEqual(['a', 'ab/1']);
    });

    test('stores an object while its neighbours are deleted', async () => {
      const prefix = folder();
      await Promise.all(
        Array.from({ length: 20 }, async (_, i) => {
          await put(`${prefix}a/b/${i}`, 'x');
          if (i % 2 === 0) await store.delete([`${prefix}a/b/${i}`], signal());
        }),
      );
      expect(await keysUnder(prefix)).toHaveLength(10);
    });

    test('removes no upload in progress as a leftover', async () => {
      const key = `${folder()}a`;
      const more = Promise.withResolvers<void>();
      async function* slow() {
        yield randomBytes(6 * MIB);
        await more.promise;
        yield randomBytes(6 * MIB);
      }
      const storing = store.put(key, Readable.from(slow()), {
        size: 12 * MIB,
        signal: signal(),
      });
      await store.removeLeftovers(signal());
      more.resolve();
      await storing;
      expect(await store.head(key, signal())).toMatchObject({ size: 12 * MIB });
    });
  });
}
