import { mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { testObjectStoreContract } from '../../test/object-store-contract.ts';
import { openTemporaryStore } from '../../test/temporary-store.ts';
import type { ObjectStore } from '../object-store.ts';
import { openFsObjectStore } from './fs-object-store.ts';
import { SignedUrls } from './signed-urls.ts';

const removals: (() => Promise<void>)[] = [];

testObjectStoreContract('an object store in a directory', async () => {
  const { store, remove } = await openTemporaryStore();
  removals.push(remove);
  return store;
});

describe('the directory of an object store', () => {
  let store: ObjectStore;
  let directory: string;
  let remove: () => Promise<void>;
  const signal = () => AbortSignal.timeout(60_000);
  const put = (key: string) => store.put(key, Buffer.from('x'), { size: 1, signal: signal() });

  beforeEach(async () => {
    ({ store, directory, remove } = await openTemporaryStore());
  });
  afterEach(async () => {
    await Promise.all([remove(), ...removals.splice(0).map((each) => each())]);
  });

  test('is private', async () => {
    await put('a/b');
    const modes = await Promise.all(
      ['keys', 'incoming', 'keys/a', 'keys/a/b.o'].map(
        async (name) => (await stat(join(directory, name))).mode & 0o777,
      ),
    );
    expect(modes).toEqual([0o700, 0o700, 0o700, 0o600]);
  });

  test('has nothing left of deleted objects and failed puts', async () => {
    await put('a/b/c');
    await put('a/d/e');
    await store.delete(['a/b/c'], signal());
    await store.deletePrefix('a/d/', signal());
    const body = Readable.from([Buffer.from('x')]);
    await expect(store.put('f', body, { size: 2, signal: signal() })).rejects.toThrow();
    expect(await readdir(directory, { recursive: true })).toEqual(['incoming', 'keys']);
  });

  test('loses old leftovers of a crash, and only those', async () => {
    const [old, recent] = ['old', 'recent'].map((name) => join(directory, 'incoming', name));
    if (old === undefined || recent === undefined) throw new Error('no paths');
    await writeFile(old, 'x');
    await writeFile(recent, 'x');
    const yesterday = new Date(Date.now() - 86_400_000);
    await utimes(old, yesterday, yesterday);
    await store.removeLeftovers(signal());
    expect(await readdir(join(directory, 'incoming'))).toEqual(['recent']);
  });

  test('is reached through no symbolic link', async () => {
    const outside = join(directory, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'secret.o'), 'secret');
    await symlink(outside, join(directory, 'keys', 'link'));
    await symlink(join(outside, 'secret.o'), join(directory, 'keys', 'file.o'));
    const unavailable = { code: 'object_store_unavailable' };
    await expect(store.get('link/secret', { signal: signal() })).rejects.toMatchObject(unavailable);
    await expect(store.head('link/secret', signal())).rejects.toMatchObject(unavailable);
    await expect(put('link/other')).rejects.toMatchObject(unavailable);
    await expect(store.delete(['link/secret'], signal())).rejects.toMatchObject(unavailable);
    await expect(store.deletePrefix('link/below/', signal())).rejects.toMatchObject(unavailable);
    await expect(store.get('file', { signal: signal() })).rejects.toMatchObject(unavailable);
    expect(await store.head('file', signal())).toBeUndefined();
    expect(await store.list({ limit: 10 }, signal())).toEqual({ objects: [] });
    await store.deletePrefix('link/', signal());
    await store.delete(['file'], signal());
    expect(await readdir(outside)).toEqual(['secret.o']);
    expect(await readFile(join(outside, 'secret.o'), 'utf8')).toBe('secret');
  });

  test('may hold other files, which are no objects', async () => {
    await put('a');
    for (const name of ['lost+found', 'B.o', '%61.o', 'b', '.o', '%zz.o']) {
      await writeFile(join(directory, 'keys', name), 'x');
    }
    const { objects } = await store.list({ limit: 10 }, signal());
    expect(objects.map(({ key }) => key)).toEqual(['a']);
  });

  test('serves several processes, and is found again', async () => {
    await put('a');
    const urls = new SignedUrls([Buffer.alloc(32)], () => '');
    const other = await openFsObjectStore({ directory, urls });
    expect(await other.head('a', signal())).toMatchObject({ size: 1 });
  });

  test('that is gone makes the store unavailable', async () => {
    await remove();
    await expect(store.ping(signal())).rejects.toMatchObject({ code: 'object_store_unavailable' });
    await expect(put('a')).rejects.toMatchObject({ code: 'object_store_unavailable' });
  });
});
