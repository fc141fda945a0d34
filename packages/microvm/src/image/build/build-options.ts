/** The image to build, its location, and a callback for progress. */
export interface BuildImageOptions {
  readonly template: string;
  readonly imageDir: string;
  /** The folder of recipes. Default: the repository's `images`. */
  readonly recipes?: string;
  /** Called with a short line of text for every step. */
  readonly onProgress: (line: string) => void;
}
