import { DESKTOP_SIZE, LIMITS, type ViewRegion, type ViewUpdate } from '@svc/contract';
import { jpegSize } from './jpeg-size.ts';

const SIZE = LIMITS.viewTilePixels;
const COLUMNS = Math.ceil(DESKTOP_SIZE.width / SIZE);
const ROWS = Math.ceil(DESKTOP_SIZE.height / SIZE);

/** A tile of the display as it was last seen. */
export interface Tile {
  readonly index: number;
  /** Rises with each change of any tile. */
  readonly version: number;
  readonly region: ViewRegion;
}

/**
 * The display of a desktop as its guest has sent it: one picture for each tile, which a newer one replaces. So what is
 * kept is bounded, whoever reads it how slowly.
 */
export class DisplayTiles {
  readonly #tiles = new Map<number, Tile>();
  #version = 0;

  /** Whether every tile has been seen. */
  get isComplete(): boolean {
    return this.#tiles.size === COLUMNS * ROWS;
  }

  /** Takes an update of the guest; tells whether it did. One in which anything is wrong is refused as a whole. */
  take({ width, height, regions }: ViewUpdate): boolean {
    if (width !== DESKTOP_SIZE.width || height !== DESKTOP_SIZE.height) return false;
    const indices = regions.map(indexOf);
    if (indices.includes(undefined) || new Set(indices).size < indices.length) return false;
    this.#version += 1;
    for (const [at, region] of regions.entries()) {
      const index = indices[at];
      if (index === undefined) continue;
      // A copy: a part would keep all bytes of the update in memory.
      const kept = { ...region, image: new Uint8Array(region.image) };
      this.#tiles.set(index, { index, version: this.#version, region: kept });
    }
    return true;
  }

  /** The tiles that are not among those seen, the ones that changed first before the others. `seen`: versions by index. */
  notIn(seen: ReadonlyMap<number, number>): Tile[] {
    const fresh = [...this.#tiles.values()].filter(
      ({ index, version }) => seen.get(index) !== version,
    );
    return fresh.sort((a, b) => a.version - b.version || a.index - b.index);
  }

  clear(): void {
    this.#tiles.clear();
  }
}

/** The place of a region in the grid of tiles; undefined if it is not exactly one tile, with a picture of that size. */
function indexOf({ x, y, width, height, image }: ViewRegion): number | undefined {
  if (x % SIZE !== 0 || y % SIZE !== 0 || image.length > LIMITS.viewTileBytes) return undefined;
  const isTile =
    width === Math.min(SIZE, DESKTOP_SIZE.width - x) &&
    height === Math.min(SIZE, DESKTOP_SIZE.height - y);
  const picture = jpegSize(image);
  if (!isTile || picture?.width !== width || picture.height !== height) return undefined;
  return (y / SIZE) * COLUMNS + x / SIZE;
}
