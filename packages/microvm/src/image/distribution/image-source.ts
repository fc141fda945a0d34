import type { ImageKey } from './manifest.ts';

/** Where a signed manifest is. */
export interface ManifestLocation {
  /** SHA-256 in hexadecimal digits, from a place that the owner of the object store does not control. */
  readonly sha256: string;
  /** In bytes. */
  readonly size: number;
}

/**
 * Where images come from. What `blob` returns may be anything: it is verified. Both methods try once; their errors count as
 * passing failures, except for those named here.
 */
export interface ImageSource {
  /** The newest manifest of an image, or undefined if the store does not have the image. */
  locate(image: ImageKey, signal: AbortSignal): Promise<ManifestLocation | undefined>;
  /**
   * The blob with this digest. @throws BlobGoneError; ImageRefusedError for one of more than `size` bytes, without holding more
   */
  blob(sha256: string, size: number, signal: AbortSignal): Promise<Buffer>;
}

/** The store no longer has a blob, because the image was replaced or pruned meanwhile. */
export class BlobGoneError extends Error {
  override readonly name = 'BlobGoneError';
}

/** How a machine gets images from the store. */
export interface ImageStoreOptions {
  readonly source: ImageSource;
  /** The public keys whose signatures count, see `publicKeyText`. */
  readonly trustedKeys: readonly string[];
  /** Images that were signed before this time are refused. Default: none. */
  readonly notBefore?: Date | undefined;
  /** The version of svc on this machine. */
  readonly version: string;
  /** Whether an image that the store does not have, or that cannot be fetched, is built. One that is refused is not. */
  readonly mayBuild: boolean;
  /** Called with what was done in the end, for the log: fetched, or why it is built. */
  readonly onOutcome: (line: string) => void;
}
