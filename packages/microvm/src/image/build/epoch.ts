/** Timestamp of everything in an image, in seconds since 1970, so that builds are reproducible. */
export const EPOCH = '1700000000';
