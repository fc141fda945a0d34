import { createHash, randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../test/test-postgres.ts';
import { openImages } from '../open-images.ts';
import { openStore, type Store } from '../store.ts';
import type { ImageRepository } from './images.ts';

const DAY = 86_400;
const NAME = { template: 'standard', imageId: '000000000001', arch: 'x64' };

let postgres: TestPostgres;
let store: Store;
let images: ImageRepository;
let client: pg.Client;

beforeAll(async () => {
  postgres = await startTestPostgres();
  const placement = { unreachableMs: 30_000, sandboxesPerTenant: 50 };
  store = await openStore({ url: postgres.url, placement });
  ({ images } = store);
  client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await store?.close();
  await postgres?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await client.query(
    'truncate workers, images, image_blobs, image_blob_uses, object_deletions cascade',
  );
});

const idOf = (text: string) => createHash('sha256').update(text).digest();

/** Uploads blobs of 100 bytes that are named so. Returns their ids. */
async function upload(...names: readonly string[]): Promise<Buffer[]> {
  for (const name of names) {
    const blob = { id: idOf(name), objectKey: `images/${name}/${randomUUID()}`, bytes: 100 };
    await images.confirm(await images.announce(blob));
  }
  return names.map(idOf);
}

/** Publishes an image of these blobs and a manifest, some hours ago. */
async function publish(
  name: typeof NAME,
  blobs: readonly string[],
  hoursAgo = 0,
  manifest: string = randomUUID(),
): Promise<void> {
  const ids = await upload(...blobs, manifest);
  const manifestId = idOf(manifest);
  const content = { contentId: idOf(blobs.join()), signer: 'ed25519:x', svcFrom: '0.1.0' };
  await images.publish({ ...name, ...content, manifestId, blobs: ids });
  await client.query(
    `update images set pushed_at = now() - make_interval(hours => $2) where image_id = $1`,
    [name.imageId, hoursAgo],
  );
}

const age = () => client.query(`update image_blobs set wanted_at = now() - interval '25 hours'`);
const listed = async () => (await images.list()).map(({ image }) => image);
const nth = (n: number) => ({ ...NAME, imageId: `00000000000${n}` });

async function addWorker(id: string, image: string, hoursSilent = 0): Promise<void> {
  await store.workers.register({
    worker_id: id,
    url: 'https://127.0.0.1:1',
    certificate: 'pem',
    version: '0',
    capacity: { vcpu: 2, memory_mib: 4096, disk_mib: 10_000 },
    templates: [{ template: 'standard', image, ready: true, vcpu: 1, memory_mib: 512 }],
    sandboxes: [],
  });
  await client.query(
    'update workers set heartbeat_at = now() - make_interval(hours => $2) where worker_id = $1',
    [id, hoursSilent],
  );
}

describe('a push', () => {
  test('keeps the object of an upload that was announced before, and counts on what is stored', async () => {
    const blob = { id: idOf('a'), objectKey: 'images/a/1', bytes: 1 };
    expect(await images.renew(blob.id)).toBeUndefined();
    expect(await images.announce(blob)).toBe('images/a/1');
    expect(await images.announce({ ...blob, objectKey: 'images/a/2' })).toBe('images/a/1');
    expect(await images.renew(blob.id)).toBeUndefined();
    await images.confirm('images/a/1');
    expect(await images.renew(blob.id)).toBe('images/a/1');
    expect(await store.objectDeletions.inUse(['images/a/1', 'images/a/2'])).toEqual(['images/a/1']);
  });

  test('publishes an image whose blobs are stored, and no other', async () => {
    await publish(NAME, ['a', 'b']);
    const found = await images.find(NAME);
    expect(found).toMatchObject({ ...NAME, manifestBytes: 100, signer: 'ed25519:x' });
    expect(await images.find({ ...NAME, arch: 'arm64' })).toBeUndefined();
    const objects = await images.objects([idOf('a'), idOf('missing')]);
    expect(objects).toMatchObject([{ id: idOf('a'), bytes: 100 }]);

    await images.announce({ id: idOf('c'), objectKey: 'images/c/1', bytes: 1 });
    const other = { ...nth(2), manifestId: idOf('a'), contentId: idOf(''), signer: '' };
    const broken = { ...other, svcFrom: '0.1.0', blobs: [idOf('a'), idOf('c')] };
    await expect(images.publish(broken)).rejects.toThrow('not stored any more');
    expect(await listed()).toEqual([NAME.imageId]);
  });

  test('replaces a damaged object, which nobody gets meanwhile, once', async () => {
    await publish(NAME, ['a']);
    const damaged = (await images.renew(idOf('a'))) ?? '';
    await images.replaceObject(damaged, 'images/a/new');
    await images.replaceObject(damaged, 'images/a/newer');
    expect(await images.objects([idOf('a')])).toEqual([]);
    const upload = { id: idOf('a'), objectKey: 'images/a/another', bytes: 100 };
    expect(await images.announce(upload)).toBe('images/a/new');
    await images.confirm('images/a/new');
    expect(await images.objects([idOf('a')])).toMatchObject([{ objectKey: 'images/a/new' }]);
    expect(await store.objectDeletions.inUse([damaged])).toEqual([]);
    const { rows } = await client.query('select object_key from object_deletions');
    expect(rows).toEqual([{ object_key: damaged }]);
  });

  test('of another build takes the place of the first, whose own blobs go', async () => {
    await publish(NAME, ['a', 'b'], 0, 'first');
    await age();
    await publish(NAME, ['b', 'c'], 0, 'second');
    expect((await images.find(NAME))?.manifestId).toEqual(idOf('second'));
    expect(await images.objects(['a', 'b', 'c', 'first'].map(idOf))).toHaveLength(2);
    // A pull of the first may be in progress.
    expect(await images.removeUnusedBlobs(DAY, 10)).toBe(0);
    await age();
    expect(await images.removeUnusedBlobs(DAY, 10)).toBe(2);
    expect(await images.renew(idOf('a'))).toBeUndefined();
    const { rows } = await client.query('select object_key from object_deletions');
    expect(rows).toHaveLength(2);
  });
});

describe('retention', () => {
  test('removes nothing within the budget', async () => {
    for (const n of [1, 2]) await publish(nth(n), [`own${n}`], 100 - n);
    expect(await images.removeUnneeded(400, DAY)).toBe(0);
    expect(await images.removeUnneeded(399, DAY)).toBe(1);
    expect(await listed()).toEqual([nth(2).imageId]);
  });

  test('removes the first pushed, but never what a live worker has or the newest of a template', async () => {
    for (const n of [1, 2, 3, 4, 5]) await publish(nth(n), ['shared', `own${n}`], 200 - n);
    await publish({ ...nth(1), template: 'browser' }, ['shared'], 300);
    await publish({ ...nth(1), arch: 'arm64' }, ['shared'], 300);
    await client.query(`update images set pushed_at = now() - interval '300 hours'
      where template = 'browser' or arch = 'arm64'`);
    await addWorker('w', nth(2).imageId);
    await addWorker('gone', nth(3).imageId, 25);
    const removed: string[] = [];
    for (;;) {
      const before = await images.list();
      if ((await images.removeUnneeded(0, DAY)) === 0) break;
      const after = (await images.list()).map(({ manifest }) => manifest);
      removed.push(
        ...before.filter((one) => !after.includes(one.manifest)).map(({ image }) => image),
      );
    }
    expect(removed).toEqual([1, 3, 4].map((n) => nth(n).imageId));
    await age();
    await images.removeUnusedBlobs(DAY, 100);
    for (const blob of ['shared', 'own2', 'own5']) {
      expect(await images.objects([idOf(blob)]), blob).toHaveLength(1);
    }
    expect(await images.renew(idOf('own1'))).toBeUndefined();
  });

  test('of two control planes at once removes no more than necessary', async () => {
    for (let round = 0; round < 5; round += 1) {
      await client.query('truncate images, image_blobs, image_blob_uses cascade');
      for (const n of [1, 2, 3]) await publish(nth(n), [`${round}-${n}`], 100 - n);
      await Promise.all([1, 2, 3].map(() => images.removeUnneeded(400, DAY)));
      expect(await listed()).toEqual([nth(3).imageId, nth(2).imageId]);
    }
  });

  test('removes no image that was pushed within a day', async () => {
    await publish(nth(1), ['a'], 23);
    await publish(nth(2), ['b'], 1);
    expect(await images.removeUnneeded(0, DAY)).toBe(0);
  });

  test('of a race between a push and the removal keeps every blob of the image', async () => {
    for (let round = 0; round < 10; round += 1) {
      const names = [0, 1, 2].map((n) => `r${round}-${n}`);
      const ids = await upload(...names);
      await age();
      const image = {
        ...{ ...NAME, contentId: idOf(''), signer: '', svcFrom: '0.1.0' },
        ...{ manifestId: idOf(names[0] ?? ''), blobs: ids },
      };
      const [published] = await Promise.allSettled([
        images.publish(image),
        images.removeUnusedBlobs(DAY, 10),
      ]);
      if (published.status === 'fulfilled') expect(await images.objects(ids)).toHaveLength(3);
      else expect(String(published.reason)).toContain('not stored any more');
    }
  });
});

test('an operator removes an image that no worker has', async () => {
  await using opened = openImages(postgres.url);
  await publish(NAME, ['a']);
  await addWorker('w', NAME.imageId);
  expect(await opened.images.list()).toMatchObject([{ workers: 1, bytes: 200 }]);
  expect(await opened.images.remove(NAME)).toBe(false);
  await client.query('delete from workers');
  expect(await opened.images.remove(NAME)).toBe(true);
  expect(await opened.images.remove(NAME)).toBe(false);
  expect(await opened.images.list()).toEqual([]);
  expect(await opened.images.bytes()).toBe(200);
});
