import type { ImageStoreOptions } from '../distribution/image-source.ts';

/** The image to build, its location, and a callback for progress. */
export interface BuildImageOptions {
  readonly template: string;
  readonly imageDir: string;
  /** The folder of recipes. Default: the repository's `images`. */
  readonly recipes?: string;
  /** Most milliseconds that a guest may take to show that KVM works. Default: 8000. */
  readonly kvmProbeMs?: number;
  /** Where to get the image from. Default: nowhere, it is built. */
  readonly store?: ImageStoreOptions;
  /** Called with a short line of text for every step. */
  readonly onProgress: (line: string) => void;
}
