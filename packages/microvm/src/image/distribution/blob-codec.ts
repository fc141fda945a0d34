import { packZstd, unpackZstd } from '@svc/service-kit/zstd';
import { ImageRefusedError } from './image-refused.ts';
import { type ImagePart, sha256 } from './manifest.ts';

/** The blob of a part. The same content gives the same blob, as long as the library stays the same. */
export function packPart(content: Buffer): Promise<Buffer> {
  return packZstd(content);
}

/**
 * The content of a part. The blob is verified before it is unpacked, and never unpacked to more than the part has.
 * @throws ImageRefusedError unless it is exactly what the manifest says
 */
export async function unpackPart(blob: Buffer, part: ImagePart): Promise<Buffer> {
  if (blob.length !== part.blob.size || sha256(blob) !== part.blob.sha256) {
    throw new ImageRefusedError(
      'damaged',
      `the blob ${part.blob.sha256} is not what the manifest says`,
    );
  }
  const content = await unpackZstd(blob, { maxBytes: part.size }).catch((cause: unknown) => {
    throw doesNotUnpack(part, cause);
  });
  if (content.length !== part.size || sha256(content) !== part.sha256) {
    throw doesNotUnpack(part);
  }
  return content;
}

function doesNotUnpack({ blob }: ImagePart, cause?: unknown): ImageRefusedError {
  const message = `the blob ${blob.sha256} does not unpack to its part`;
  return new ImageRefusedError('invalid', message, { cause });
}
