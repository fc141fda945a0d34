/**
 * The files of a read-only disk, from the bottom up: a raw image, and on it qcow2 images that each hold only the blocks in
 * which they differ from what is below them.
 */
export type DiskImage = readonly string[];
