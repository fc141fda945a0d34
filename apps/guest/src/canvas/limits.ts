/** The bounds of a rendering. */
export const LIMITS = {
  /** Most pixels of a side of a canvas. */
  side: 8192,
  /** Most pixels of a canvas: 4096 × 4096, which take 64 MiB. */
  pixels: 16_777_216,
  /** Seconds that a rendering may take, by default and at most. */
  timeout: { default: 60, most: 600 },
  /** Animation frames of a program, by default and at most. */
  frames: { default: 60, most: 3600 },
  /** Milliseconds of the page's own clock that a page's timers may use. */
  timers: 10_000,
  /** Most calls of timers of a page. */
  timerCalls: 10_000,
  /** Most bytes of one image or font that a program loads. */
  file: 64 * 1024 * 1024,
} as const;

/** The size of a canvas or a viewport without any other. */
export const DEFAULT_SIZE = { width: 800, height: 600 } as const;

/** A width and a height in pixels. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Why a canvas of this size is not allowed, if it is not. */
export function sizeProblem({ width, height }: Size): string | undefined {
  if (width > LIMITS.side || height > LIMITS.side) {
    return `a canvas of ${width} × ${height} is too large: each side may have ${LIMITS.side} pixels`;
  }
  if (width * height > LIMITS.pixels) {
    return `a canvas of ${width} × ${height} is too large: it may have ${LIMITS.pixels} pixels`;
  }
  return undefined;
}

/** @throws RangeError if a canvas of this size is not allowed */
export function checkSize(size: Size): void {
  const problem = sizeProblem(size);
  if (problem !== undefined) throw new RangeError(problem);
}
