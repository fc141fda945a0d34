import { LIMITS, type ViewRegion, type ViewUpdate } from '@svc/contract';
import { describe, expect, it } from 'vitest';
import { jpeg, tile, wholeDisplay } from '../../../test/display.ts';
import { DisplayTiles } from './display-tiles.ts';

const NOTHING_SEEN = new Map<number, number>();

function updateOf(regions: readonly ViewRegion[], more: Partial<ViewUpdate> = {}): ViewUpdate {
  return { number: 1, isCurrent: true, width: 1280, height: 800, regions, ...more };
}

function taken(regions: readonly ViewRegion[]): DisplayTiles {
  const tiles = new DisplayTiles();
  expect(tiles.take(updateOf(regions))).toBe(true);
  return tiles;
}

describe('the tiles of a display', () => {
  it('are complete with the last one', () => {
    const [last, ...others] = wholeDisplay().reverse();
    const tiles = taken(others);
    expect(tiles.isComplete).toBe(false);
    expect(tiles.take(updateOf(last === undefined ? [] : [last]))).toBe(true);
    expect(tiles.isComplete).toBe(true);
    tiles.clear();
    expect(tiles.isComplete).toBe(false);
    expect(tiles.notIn(NOTHING_SEEN)).toEqual([]);
  });

  it('are each kept once, as they were last', () => {
    const tiles = taken(wholeDisplay(1));
    for (let content = 2; content < 50; content += 1) tiles.take(updateOf([tile(3, 4, content)]));
    const all = tiles.notIn(NOTHING_SEEN);
    expect(all).toHaveLength(70);
    expect(all.at(-1)?.region).toEqual(tile(3, 4, 49));
  });

  it('that a reader lacks are those that changed since, the oldest change first', () => {
    const tiles = taken(wholeDisplay(1));
    const seen = new Map(tiles.notIn(NOTHING_SEEN).map(({ index, version }) => [index, version]));
    expect(tiles.notIn(seen)).toEqual([]);
    tiles.take(updateOf([tile(5, 5, 2)]));
    tiles.take(updateOf([tile(1, 1, 2), tile(0, 0, 2)]));
    expect(tiles.notIn(seen).map(({ region }) => region)).toEqual([
      tile(5, 5, 2),
      tile(0, 0, 2),
      tile(1, 1, 2),
    ]);
  });

  it('hold nothing of the message in which they came', () => {
    const message = new Uint8Array(10_000_000);
    const region = tile(0, 0, 7);
    message.set(region.image);
    const tiles = taken([{ ...region, image: message.subarray(0, region.image.length) }]);
    const [kept] = tiles.notIn(NOTHING_SEEN);
    expect(kept?.region.image).toEqual(region.image);
    expect(kept?.region.image.buffer.byteLength).toBe(region.image.length);
  });

  it.each<[string, readonly ViewRegion[], Partial<ViewUpdate>]>([
    ['of another display', [], { width: 1281 }],
    ['of one that is less high', [], { height: 799 }],
    ['twice the same', [tile(1, 1), tile(1, 1)], {}],
    ['between two others', [{ ...tile(1, 1), x: 129 }], {}],
    ['that is too small', [{ ...tile(1, 1), width: 127 }], {}],
    ['that is larger than a tile', [{ ...tile(1, 1), width: 256 }], {}],
    ['that is whole at the lower edge', [{ ...tile(1, 6), height: 128 }], {}],
    ['with a picture of another width', [{ ...tile(1, 1), image: jpeg(60_000, 128) }], {}],
    ['with a picture of another height', [{ ...tile(1, 1), image: jpeg(128, 60_000) }], {}],
    ['with something else as a picture', [{ ...tile(1, 1), image: new Uint8Array(99) }], {}],
    ['with no picture', [{ ...tile(1, 1), image: new Uint8Array() }], {}],
    ['with too large a picture', [tile(1, 1, 0, LIMITS.viewTileBytes + 1)], {}],
  ])('%s are refused, with all that came with them', (_what, regions, more) => {
    const tiles = new DisplayTiles();
    expect(tiles.take(updateOf([tile(9, 0), ...regions], more))).toBe(false);
    expect(tiles.notIn(NOTHING_SEEN)).toEqual([]);
  });
});
