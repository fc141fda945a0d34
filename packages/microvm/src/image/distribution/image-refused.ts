/**
 * Why an image from the store is refused: `damaged` content, which another push replaces; a signature that is not `trusted`;
 * a signed image that is not the wanted one, was `withdrawn`, or is `invalid` in itself.
 */
export type RefusalReason = 'damaged' | 'untrusted' | 'another' | 'withdrawn' | 'invalid';

/** What the store has as an image is not what its operator signed, or not the image that was asked for. None of it is used. */
export class ImageRefusedError extends Error {
  override readonly name = 'ImageRefusedError';
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** The store does not have an image, or not all of it, and this machine may not build it. */
export class ImageNotStoredError extends Error {
  override readonly name = 'ImageNotStoredError';
}
