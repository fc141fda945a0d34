/**
 * Objects under keys, in a directory or in S3.
 *
 * - `fs/`  a directory, with presigned URLs that the control plane serves
 * - `s3/`  a bucket of an S3 server
 */

export { type FsObjectStoreOptions, openFsObjectStore } from './fs/fs-object-store.ts';
export { OBJECTS_PATH, SignedUrls, type UrlGrant, type UrlQuery } from './fs/signed-urls.ts';
export { locateRange } from './object-range.ts';
export * from './object-store.ts';
export {
  isObjectStoreError,
  ObjectStoreError,
  type ObjectStoreErrorCode,
} from './object-store-error.ts';
export type { S3Settings } from './s3/s3-client.ts';
export { openS3ObjectStore } from './s3/s3-object-store.ts';
