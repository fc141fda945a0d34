import { uuidv7 } from 'uuidv7';

/** Prefix of the objects with the blobs of images. */
export const IMAGE_OBJECTS = 'images/';

/** A key that no other object has or had, under the digest of the blob, which is 32 bytes. */
export function newImageKey(digest: Buffer): string {
  return `${IMAGE_OBJECTS}${digest.toString('hex')}/${uuidv7()}`;
}
