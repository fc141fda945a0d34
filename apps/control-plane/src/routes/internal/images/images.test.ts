import { createHash } from 'node:crypto';
import { loadConfig } from '@svc/config';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { askAsWorker } from '../../../../test/ask-as-worker.ts';
import { Harness } from '../../../../test/harness.ts';
import { openObjectStore } from '../../../objects/open-objects.ts';

const CONTENT = Buffer.from('the blob of an image');
const DIGEST = createHash('sha256').update(CONTENT).digest('hex');
const IMAGE = { template: 'standard', image: '0123456789ab', arch: 'x64' };

let harness: Harness;
let worker: WorkerDouble;

const post = (path: string, body: object) =>
  askAsWorker(worker, harness.plane.url, 'POST', `/images/${path}`, body);

beforeAll(async () => {
  harness = await Harness.start();
  worker = await harness.addWorker('w1');
});
afterAll(() => harness?.[Symbol.asyncDispose]());

test('tell a worker where a stored image is, and nothing else', async () => {
  expect(await post('locate', IMAGE)).toMatchObject({ status: 200, body: {} });
  expect(await post('downloads', { blobs: [DIGEST] })).toMatchObject({ body: { blobs: [] } });

  const signal = AbortSignal.timeout(60_000);
  await using objects = await openObjectStore(loadConfig({ SVC_DATA_DIR: harness.dataDir }));
  await objects.put('images/blob/1', CONTENT, { size: CONTENT.length, signal });
  await harness.sql.query(
    `insert into image_blobs values (decode($1, 'hex'), 'images/blob/1', $2, now())`,
    [DIGEST, CONTENT.length],
  );
  // A blob that no image contains is none of the workers' business.
  expect(await post('downloads', { blobs: [DIGEST] })).toMatchObject({ body: { blobs: [] } });
  const key = [IMAGE.template, IMAGE.image, IMAGE.arch, DIGEST];
  await harness.sql.query(
    `insert into images values ($1, $2, $3, decode($4, 'hex'), '', 'k', '0.1.0')`,
    key,
  );
  await harness.sql.query(
    `insert into image_blob_uses values ($1, $2, $3, decode($4, 'hex'))`,
    key,
  );

  expect(await post('locate', IMAGE)).toMatchObject({
    status: 200,
    body: { manifest: { sha256: DIGEST, size: CONTENT.length } },
  });
  expect((await post('locate', { ...IMAGE, arch: 'arm64' })).body).toEqual({});
  const { body } = await post('downloads', { blobs: [DIGEST, 'f'.repeat(64)] });
  const [blob, ...others] = body.blobs as { sha256: string; url: string }[];
  expect(others).toEqual([]);
  expect(blob?.sha256).toBe(DIGEST);
  // Without the credential of the worker.
  const response = await fetch(new URL(blob?.url ?? '', harness.plane.url));
  expect(Buffer.from(await response.arrayBuffer())).toEqual(CONTENT);
});

test('refuse names that are no digests, and callers without a token', async () => {
  for (const blob of ['', '../sessions/x', DIGEST.toUpperCase(), `${DIGEST}0`, 7]) {
    expect((await post('downloads', { blobs: [blob] })).status).toBe(400);
  }
  expect((await post('downloads', { blobs: Array(65).fill(DIGEST) })).status).toBe(400);
  expect((await post('locate', { ...IMAGE, template: '../x' })).status).toBe(400);
  for (const path of ['locate', 'downloads']) {
    const url = new URL(`/internal/v1/images/${path}`, harness.plane.url);
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(IMAGE) });
    expect(response.status).toBe(401);
  }
});
