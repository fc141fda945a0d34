import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type S3Server, startS3Server } from '@svc/s3-server';
import { BUILT_IMAGES } from '@svc/service-kit/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { commandLine, type Outcome } from '../../../test/run-svc.ts';

/** The first start on a machine builds the image, and a snapshot of it is taken here. */
const TEST_MS = 1_200_000;

let directory: string;
let s3: S3Server;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-one-machine-'));
  s3 = await startS3Server();
});
afterAll(async () => {
  await service({})(['down']);
  await s3?.close();
  await rm(directory, { recursive: true, force: true });
}, TEST_MS);

/** Runs commands of a service that keeps its objects in the bucket, with these settings besides. */
function service(
  settings: Readonly<Record<string, string>>,
): (args: readonly string[]) => Promise<Outcome> {
  const { endpoint, region, bucket, accessKeyId, secretAccessKey } = s3.settings;
  return commandLine({
    HOME: directory,
    SVC_DATA_DIR: join(directory, 'data'),
    SVC_LISTEN: 'localhost:0',
    SVC_POOL: 'standard=0',
    SVC_S3_ENDPOINT: endpoint,
    SVC_S3_REGION: region,
    SVC_S3_BUCKET: bucket,
    SVC_S3_ACCESS_KEY_ID: accessKeyId,
    SVC_S3_SECRET_ACCESS_KEY: secretAccessKey,
    ...settings,
  });
}

test(
  'svc up on one machine starts from an image that it pushed to its S3 bucket',
  async () => {
    const builder = service({ SVC_IMAGE_DIR: BUILT_IMAGES });
    const { output: key } = await builder(['image', 'key']);
    const imageDir = join(directory, 'images');
    const other = service({
      SVC_IMAGE_DIR: imageDir,
      SVC_IMAGE_SOURCE: 'store',
      SVC_IMAGE_TRUSTED_KEYS: key.trim(),
    });
    const early = await other(['up', '--detach']);
    expect(early).toMatchObject({ code: 1, output: expect.stringContaining('image_not_stored') });
    expect(early.output).toContain('svc image push standard');

    const pushed = await builder(['image', 'push', 'standard']);
    expect(pushed).toMatchObject({ code: 0, output: expect.stringContaining('sent ') });
    const up = await other(['up', '--detach']);
    expect(up).toMatchObject({ code: 0, output: expect.stringMatching(/ run +python3 .* = 42 /) });
    expect(await readdir(imageDir)).toContain('standard');
    expect(await readdir(join(imageDir, '.pulls'))).toEqual([]);
    expect((await other(['down'])).code).toBe(0);
  },
  TEST_MS,
);
