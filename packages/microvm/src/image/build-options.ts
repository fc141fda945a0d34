/** What to build, where, and who is told. */
export interface BuildImageOptions {
  readonly template: string;
  readonly imageDir: string;
  /** The folder of recipes. Default: the repository's `images`. */
  readonly recipes?: string;
  /** Told what is being done, a short line at a time. */
  readonly onProgress: (line: string) => void;
}
