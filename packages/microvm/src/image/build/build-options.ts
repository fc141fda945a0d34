/** The image to build, its location, and a callback for progress. */
export interface BuildImageOptions {
  readonly template: string;
  readonly imageDir: string;
  /** The folder of recipes. Default: the repository's `images`. */
  readonly recipes?: string;
  /** Most milliseconds that a guest may take to show that KVM works. Default: 8000. */
  readonly kvmProbeMs?: number;
  /** Called with a short line of text for every step. */
  readonly onProgress: (line: string) => void;
}
