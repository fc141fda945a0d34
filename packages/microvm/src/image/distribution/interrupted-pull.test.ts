import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MemoryImageStore } from '../../../test/memory-image-store.ts';
import { smallRecipe } from '../../../test/small-recipe.ts';
import { temporaryDirectory } from '../../../test/temporary-directory.ts';
import { unbootableImage } from '../../../test/unbootable-image.ts';
import { imageDirectory, namesIn, readImages } from '../image-store.ts';
import { localManifest } from './manifest.ts';
import { pushImage } from './push-image.ts';
import { createImageSigningKey, publicKeyText, readImageSigningKey } from './signing-keys.ts';

const PROGRAM = fileURLToPath(new URL('../../../test/pull-from-url.ts', import.meta.url));
const signingKey = readImageSigningKey(createImageSigningKey().privateKey);
const signal = () => AbortSignal.timeout(120_000);

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let recipes: string;
let imageDir: string;
let built: Awaited<ReturnType<typeof unbootableImage>>;
let store: MemoryImageStore;
let server: Server;
/** The server answers with this many more blobs, and then lets its clients wait. */
let budget = 0;
const events = new EventEmitter();

beforeEach(async () => {
  directory = await temporaryDirectory();
  recipes = await smallRecipe(directory.path);
  imageDir = join(directory.path, 'worker');
  await mkdir(imageDir);
  const builder = join(directory.path, 'builder');
  built = await unbootableImage(builder, 'small', recipes);
  store = new MemoryImageStore();
  const common = { template: 'small', recipes, onProgress: () => undefined };
  const push = { ...common, imageDir: builder, sink: store, signingKey, version: '1.0.0' };
  await pushImage(push, signal());
  server = createServer(async ({ url = '' }, response) => {
    if (url === '/manifest') {
      const { id: image } = built;
      const location = await store.locate({ template: 'small', image, arch: process.arch });
      return response.end(JSON.stringify(location));
    }
    if (budget === 0) return events.emit('waiting');
    budget -= 1;
    response.end(await store.blob(url.replace('/blobs/', ''), Number.POSITIVE_INFINITY));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  server?.closeAllConnections();
  server?.close();
  await directory.remove();
});

function startPull(): ChildProcess {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const words = [PROGRAM, url, imageDir, recipes, publicKeyText(signingKey)];
  return spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
}

test('a pull whose process is killed shows no part of an image, and the next one goes on', async () => {
  const { manifest = '' } = store.published.at(-1) ?? {};
  const { files } = localManifest(store.blobs.get(manifest) ?? Buffer.of());
  const parts = files.reduce((sum, file) => sum + file.parts.length, 0);
  const left = join(imageDir, '.pulls', `small-${built.id}`);
  for (const blobs of [1, 4]) {
    budget = blobs;
    const waiting = once(events, 'waiting', { signal: signal() });
    const child = startPull();
    const ended = once(child, 'exit');
    await waiting;
    child.kill('SIGKILL');
    await ended;
    expect(await readImages(imageDir)).toEqual([]);
    expect(await namesIn(imageDir)).toEqual([]);
  }
  expect(await readdir(left)).toContain('manifest.json');

  store.fetched.splice(0);
  budget = Number.POSITIVE_INFINITY;
  const child = startPull();
  if (child.stdout === null) throw new Error('the process has no output');
  const [output, [exitCode]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  expect({ output, exitCode }).toMatchObject({
    output: expect.stringContaining('fetched the image from the store'),
    exitCode: 0,
  });
  expect(store.fetched.length).toBeLessThan(1 + parts);
  for (const name of await readdir(built.directory)) {
    const [one, other] = await Promise.all(
      [built.directory, imageDirectory(imageDir, 'small', built.id)].map((path) =>
        readFile(join(path, name)),
      ),
    );
    expect(other?.equals(one ?? Buffer.of()), name).toBe(true);
  }
  expect(await readdir(join(imageDir, '.pulls'))).toEqual([]);
});
