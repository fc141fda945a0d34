import { createHash, type KeyObject } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { openEnvelope, payloadOf, sealEnvelope } from './envelope.ts';
import { ImageRefusedError } from './image-refused.ts';

/** Files are cut into parts of this size, each of which is one blob, so that a transfer can go on where it ended. */
export const PART_BYTES = 8 * 1024 * 1024;
/** Of a compressed part. zstd adds a few bytes to what it cannot compress. */
export const MAX_BLOB_BYTES = PART_BYTES + 64 * 1024;
/** Of all files of an image together, without their holes: 64 GiB. */
const MAX_PARTS = 8192;
/** Of one file, with its holes. */
const MAX_FILE_BYTES = 1024 ** 4;
/** Of a signed manifest. */
export const MAX_MANIFEST_BYTES = 8 * 1024 * 1024;

/** Name under which the signed manifest lies beside the files of an image that came from the store. */
export const MANIFEST_FILE = 'manifest.json';

const TYPE = 'application/vnd.svc.image-manifest.v1+json';

/** SHA-256, in hexadecimal digits. */
const Digest = Type.String({ pattern: '^[0-9a-f]{64}$' });
const Version = Type.String({ pattern: '^\\d{1,9}\\.\\d{1,9}\\.\\d{1,9}(-[0-9A-Za-z.-]{1,64})?$' });

const ImagePart = Type.Object({
  /** Position in the file, a multiple of {@link PART_BYTES}. */
  offset: Type.Integer({ minimum: 0, maximum: MAX_FILE_BYTES, multipleOf: PART_BYTES }),
  size: Type.Integer({ minimum: 1, maximum: PART_BYTES }),
  /** Of the content. */
  sha256: Digest,
  /** The content, compressed with zstd. */
  blob: Type.Object({
    sha256: Digest,
    size: Type.Integer({ minimum: 1, maximum: MAX_BLOB_BYTES }),
  }),
});
export type ImagePart = Static<typeof ImagePart>;

const ImageFile = Type.Object({
  /** Never with a slash, and never hidden. */
  name: Type.String({ pattern: '^[a-z0-9][a-z0-9._-]{0,99}$' }),
  size: Type.Integer({ minimum: 0, maximum: MAX_FILE_BYTES }),
  /** In the order of the offsets. What they leave out is zero. */
  parts: Type.Array(ImagePart, { maxItems: MAX_PARTS }),
});
export type ImageFile = Static<typeof ImageFile>;

const ImageManifest = Type.Object({
  template: Type.String({ minLength: 1, maxLength: 100 }),
  /** Digest of the recipe. */
  image: Type.String({ pattern: '^[0-9a-f]{12}$' }),
  /** As in Node's `process.arch`. */
  arch: Type.String({ maxLength: 20 }),
  /** The oldest version of svc that may use the image. */
  svc_from: Version,
  /** When it was signed, in UTC. */
  created_at: Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' }),
  files: Type.Array(ImageFile, { minItems: 1, maxItems: 32 }),
});
/** What an image consists of. */
export type ImageManifest = Static<typeof ImageManifest>;
const manifests = Compile(ImageManifest);

/** Which image a machine needs. */
export interface ImageKey {
  readonly template: string;
  /** Digest of the recipe. */
  readonly image: string;
  readonly arch: string;
}

/** Which signed images a machine accepts, see `ImageStoreOptions`. */
export interface Trust {
  readonly trustedKeys: readonly string[];
  readonly notBefore?: Date | undefined;
  readonly version: string;
}

export function signManifest(manifest: ImageManifest, key: KeyObject): Buffer {
  return sealEnvelope(TYPE, Buffer.from(JSON.stringify(manifest)), key);
}

/**
 * The manifest in an envelope, if a trusted key signed it, and if it is that of the wanted image, has not been withdrawn, and
 * may be used by this version of svc. @throws ImageRefusedError
 */
export function openManifest(
  envelope: Buffer,
  wanted: ImageKey,
  { trustedKeys, notBefore, version }: Trust,
): ImageManifest {
  const manifest = parseManifest(openEnvelope(envelope, TYPE, trustedKeys));
  for (const field of ['template', 'image', 'arch'] as const) {
    if (manifest[field] !== wanted[field]) {
      throw new ImageRefusedError(
        'another',
        `the manifest is that of another ${field}: ${manifest[field]} instead of ${wanted[field]}`,
      );
    }
  }
  if (notBefore !== undefined && !(new Date(manifest.created_at) >= notBefore)) {
    throw new ImageRefusedError(
      'withdrawn',
      `the image was signed at ${manifest.created_at}, and those from before ${notBefore.toISOString()} are withdrawn`,
    );
  }
  if (isOlder(version, manifest.svc_from)) {
    throw new ImageRefusedError('another', `the image needs svc ${manifest.svc_from} or later`);
  }
  return manifest;
}

/** The manifest of an image of this machine, which was verified when it came here. @throws ImageRefusedError */
export function localManifest(envelope: Buffer): ImageManifest {
  return parseManifest(payloadOf(envelope));
}

function parseManifest(payload: Buffer): ImageManifest {
  const manifest = parseJson(payload);
  if (!manifests.Check(manifest)) throw new ImageRefusedError('invalid', 'the manifest is invalid');
  const names = new Set([MANIFEST_FILE]);
  let parts = 0;
  for (const file of manifest.files) {
    if (names.has(file.name)) {
      throw new ImageRefusedError('invalid', 'the manifest names a file twice');
    }
    names.add(file.name);
    parts += file.parts.length;
    checkParts(file);
  }
  if (parts > MAX_PARTS) throw new ImageRefusedError('invalid', 'the image is too large');
  return manifest;
}

function parseJson(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString());
  } catch (cause) {
    throw new ImageRefusedError('invalid', 'the manifest is invalid', { cause });
  }
}

/** Parts follow each other, and each is as long as its place allows, so that none writes over or beyond anything. */
function checkParts({ size, parts }: ImageFile): void {
  let end = 0;
  for (const part of parts) {
    if (part.offset < end || part.size !== Math.min(PART_BYTES, size - part.offset)) {
      throw new ImageRefusedError('invalid', 'the parts of a file do not fit together');
    }
    end = part.offset + part.size;
  }
}

/** Digest of what a manifest says about content, whenever and by whomever it was signed. */
export function contentDigest(files: readonly ImageFile[]): string {
  return sha256(JSON.stringify(files));
}

/** Digest of the content of a file. */
export function fileDigest({ size, parts }: ImageFile): string {
  return sha256(JSON.stringify([size, parts.map((part) => [part.offset, part.sha256])]));
}

export function sha256(content: Buffer | string): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Whether a version comes before another; what follows a hyphen does not count. */
function isOlder(version: string, than: string): boolean {
  const one = numbersOf(version);
  const other = numbersOf(than);
  const at = one.findIndex((number, index) => number !== other[index]);
  return at >= 0 && (one[at] ?? 0) < (other[at] ?? 0);
}

function numbersOf(version: string): number[] {
  return (version.split('-')[0] ?? '').split('.').map(Number);
}
