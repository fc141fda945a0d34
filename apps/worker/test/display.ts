import { DESKTOP_SIZE, type ViewRegion, type ViewUpdate, writeViewUpdate } from '@svc/contract';

const TILE = 128;

/** The header of a JPEG of this size, padded to so many bytes with `content`. */
export function jpeg(width: number, height: number, content = 0, bytes = 1_000): Uint8Array {
  const size = [height >> 8, height & 0xff, width >> 8, width & 0xff];
  const image = new Uint8Array(bytes).fill(content);
  image.set([0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, 0xc0, 0, 17, 8, ...size, 3]);
  return image;
}

/** A tile with a picture that `content` tells from others. */
export function tile(column: number, row: number, content = 0, bytes = 1_000): ViewRegion {
  const [x, y] = [column * TILE, row * TILE];
  const width = Math.min(TILE, DESKTOP_SIZE.width - x);
  const height = Math.min(TILE, DESKTOP_SIZE.height - y);
  return { x, y, width, height, image: jpeg(width, height, content, bytes) };
}

/** All tiles of the display. */
export function wholeDisplay(content = 0, bytes = 1_000): ViewRegion[] {
  const places = Array.from({ length: 70 }, (_, at) => [at % 10, Math.floor(at / 10)] as const);
  return places.map(([column, row]) => tile(column, row, content, bytes));
}

/** An update of the guest with these tiles. */
export function update(regions: readonly ViewRegion[], more: Partial<ViewUpdate> = {}): Uint8Array {
  return writeViewUpdate({ number: 1, isCurrent: true, ...DESKTOP_SIZE, regions, ...more });
}

/** What a client that has drawn these updates sees: the `content` of each tile, by its position. */
export function drawn(updates: readonly ViewUpdate[]): Record<string, number> {
  const display: Record<string, number> = {};
  for (const { regions } of updates) {
    for (const { x, y, image } of regions) display[`${x},${y}`] = image.at(-1) ?? -1;
  }
  return display;
}
