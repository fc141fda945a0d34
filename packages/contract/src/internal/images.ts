/**
 * VM images in the object store, for workers. Manifest and blobs travel between the worker and the object store, by URLs that
 * are valid for a few minutes. A URL without a host is relative to the control plane. What they give is not trusted: the
 * manifest has the digest that the control plane names and a signature that the worker knows, and it names all blobs.
 */

import { type Static, Type } from 'typebox';

/** SHA-256, in hexadecimal digits. */
const Digest = Type.String({ pattern: '^[0-9a-f]{64}$' });
const BATCH = 64;

/** `POST /internal/v1/images/locate`: the newest manifest of an image. `image` is the digest of its recipe. */
export const LocateImageRequest = Type.Object({
  template: Type.String({ pattern: '^[a-z][a-z0-9-]{0,63}$' }),
  image: Type.String({ pattern: '^[0-9a-f]{12}$' }),
  /** As in Node's `process.arch`. */
  arch: Type.String({ pattern: '^[a-z0-9]{1,20}$' }),
});
export type LocateImageRequest = Static<typeof LocateImageRequest>;

/** Empty if the store does not have the image. `size` is in bytes. */
export const LocatedImage = Type.Object({
  manifest: Type.Optional(
    Type.Object({ sha256: Digest, size: Type.Integer({ minimum: 1, maximum: 2 ** 31 }) }),
  ),
});
export type LocatedImage = Static<typeof LocatedImage>;

/** `POST /internal/v1/images/downloads`: where blobs of images are. */
export const LocateBlobsRequest = Type.Object({
  blobs: Type.Array(Digest, { minItems: 1, maxItems: BATCH }),
});
export type LocateBlobsRequest = Static<typeof LocateBlobsRequest>;

/** Without the blobs that the store does not have as part of an image. */
export const LocatedBlobs = Type.Object({
  blobs: Type.Array(Type.Object({ sha256: Digest, url: Type.String() })),
});
export type LocatedBlobs = Static<typeof LocatedBlobs>;
