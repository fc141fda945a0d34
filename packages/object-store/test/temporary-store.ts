import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFsObjectStore } from '../src/fs/fs-object-store.ts';
import { SignedUrls } from '../src/fs/signed-urls.ts';
import type { ObjectStore } from '../src/object-store.ts';

/** An object store in a temporary directory, which nobody serves. Disposing it removes the directory. */
export async function openTemporaryStore(): Promise<{
  store: ObjectStore;
  directory: string;
  remove(): Promise<void>;
}> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-object-store-'));
  const urls = new SignedUrls([Buffer.alloc(32, 1)], () => 'https://objects.test');
  const store = await openFsObjectStore({ directory, urls });
  return { store, directory, remove: () => rm(directory, { recursive: true, force: true }) };
}
