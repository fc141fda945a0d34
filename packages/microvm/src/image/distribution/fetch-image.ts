import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Slots } from '@svc/service-kit/concurrency';
import { writeFileAtomic } from '@svc/service-kit/process';
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { fetchBlob } from './fetch-blob.ts';
import { fetchFile } from './fetch-file.ts';
import { ImageRefusedError } from './image-refused.ts';
import type { ImageStoreOptions, ManifestLocation } from './image-source.ts';
import { LocalFiles } from './local-files.ts';
import {
  type ImageFile,
  type ImageKey,
  type ImageManifest,
  MANIFEST_FILE,
  MAX_MANIFEST_BYTES,
  openManifest,
  sha256,
} from './manifest.ts';
import { requireSpace, withoutFillingDisk } from './require-space.ts';

/** What an image must say of itself. */
const Description = Type.Object({
  template: Type.String(),
  id: Type.String(),
  disk: Type.Array(Type.String(), { minItems: 1 }),
});
const descriptions = Compile(Description);

/** Parts in transfer at once. Each needs up to 24 MiB of memory. */
const PARTS_AT_ONCE = 4;

export interface FetchImageOptions {
  readonly image: ImageKey;
  readonly store: ImageStoreOptions;
  /** Where images are, of which files are shared. */
  readonly imageDir: string;
  /** Gets the files. It may have what an interrupted call left, which is used as far as it is right. */
  readonly directory: string;
  readonly onProgress: (line: string) => void;
}

/**
 * Fetches the files of an image into a directory, and verifies every byte of them. False if the store does not have the
 * image. The caller makes sure that no other call fetches into the directory.
 * @throws ImageRefusedError if anything is not what a trusted key signed; MicrovmError `host_disk_full`
 */
export async function fetchImage(
  options: FetchImageOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const { image, store, directory } = options;
  const location = await store.source.locate(image, signal);
  if (location === undefined) return false;
  const envelope = await fetchManifest(location, store, signal);
  const manifest = openManifest(envelope, image, store);
  await withoutFillingDisk(directory, async () => {
    await openDirectory(directory, envelope);
    await fetchFiles(manifest, options, signal);
  });
  await checkDescription(manifest, directory);
  return true;
}

async function fetchFiles(
  manifest: ImageManifest,
  { store: { source }, imageDir, directory, onProgress }: FetchImageOptions,
  signal: AbortSignal,
): Promise<void> {
  const local = await LocalFiles.read(imageDir);
  const missing: ImageFile[] = [];
  for (const file of manifest.files) {
    if (!(await local.link(file, join(directory, file.name)))) missing.push(file);
  }
  await requireSpace(directory, missing);
  const onPart = progressOf(missing, onProgress);
  const slots = new Slots(PARTS_AT_ONCE);
  for (const file of missing) {
    await fetchFile({ file, path: join(directory, file.name), source, slots, onPart }, signal);
  }
}

async function fetchManifest(
  location: ManifestLocation,
  { source }: ImageStoreOptions,
  signal: AbortSignal,
): Promise<Buffer> {
  if (location.size > MAX_MANIFEST_BYTES) {
    throw new ImageRefusedError('invalid', 'the manifest is too large');
  }
  const envelope = await fetchBlob(source, location, signal);
  if (sha256(envelope) !== location.sha256) {
    throw new ImageRefusedError(
      'damaged',
      'the manifest is another one than the control plane named',
    );
  }
  return envelope;
}

/** Keeps what an interrupted fetch of the same manifest left, and nothing else: gaps of its files have only zeros. */
async function openDirectory(directory: string, envelope: Buffer): Promise<void> {
  const path = join(directory, MANIFEST_FILE);
  const earlier = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (earlier?.equals(envelope)) return;
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true, mode: 0o755 });
  await writeFileAtomic(path, envelope, { mode: 0o644 });
}

function progressOf(
  files: readonly ImageFile[],
  onProgress: (line: string) => void,
): (bytes: number) => void {
  const parts = files.flatMap((file) => file.parts);
  const all = megabytes(parts.reduce((sum, { blob }) => sum + blob.size, 0));
  let bytes = 0;
  return (more) => {
    bytes += more;
    onProgress(`fetching the image, ${megabytes(bytes)} of ${all} MB`);
  };
}

function megabytes(bytes: number): number {
  return Math.ceil(bytes / 1_000_000);
}

/** The description in the image must be that of this image, and name files that it has. */
async function checkDescription(
  { template, image, files }: ImageManifest,
  directory: string,
): Promise<void> {
  const names = new Set(files.map(({ name }) => name));
  const has = (name: string) => names.has(name);
  if (!['image.json', 'vmlinuz', 'initrd'].every(has)) {
    throw new ImageRefusedError('invalid', 'the image lacks a file that every image has');
  }
  const description = parseDescription(await readFile(join(directory, 'image.json'), 'utf8'));
  const isWhole =
    description?.template === template && description.id === image && description.disk.every(has);
  if (!isWhole) {
    throw new ImageRefusedError('invalid', 'the description of the image is not its own');
  }
}

function parseDescription(text: string): Static<typeof Description> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ImageRefusedError('invalid', 'the description of the image is no JSON', { cause });
  }
  return descriptions.Check(value) ? value : undefined;
}
