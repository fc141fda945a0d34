import { LIMITS, readViewUpdate, type ViewUpdate } from '@svc/contract';
import { beforeEach, describe, expect, it } from 'vitest';
import { drawn, tile, wholeDisplay } from '../../../test/display.ts';
import { DisplayTiles } from './display-tiles.ts';
import { Watcher } from './watcher.ts';

const SETTINGS = { fps: 2, quality: 70 };
let now: number;
let tiles: DisplayTiles;
let updates: ViewUpdate[];
let viewer: { unsentBytes: number; showView(update: Uint8Array): void };
let watcher: Watcher;

beforeEach(() => {
  now = 0;
  updates = [];
  viewer = {
    unsentBytes: 0,
    showView: (message) => {
      const update = readViewUpdate(message);
      if (update !== undefined) updates.push(update);
    },
  };
  tiles = new DisplayTiles();
  watcher = new Watcher(viewer, () => now);
});

function show(regions: Parameters<typeof drawn>[0][number]['regions']): void {
  const display = { width: 1280, height: 800 };
  expect(tiles.take({ number: 1, isCurrent: true, ...display, regions })).toBe(true);
}

/** Sends all that may be sent at once, and confirms it. Returns the bytes. */
function sendAll(): number {
  let bytes = 0;
  while (watcher.waitMs() === 0) {
    const sent = watcher.send(tiles);
    if (sent === 0) break;
    bytes += sent;
    watcher.acknowledge(updates.at(-1)?.number ?? 0);
  }
  return bytes;
}

describe('a client of a live view', () => {
  it('gets nothing before it asks, nor after it has left, nor of half a display', () => {
    show(wholeDisplay().slice(1));
    expect(watcher.waitMs()).toBeUndefined();
    expect(watcher.send(tiles)).toBe(0);
    watcher.start(SETTINGS);
    expect(watcher.send(tiles)).toBe(0);
    show(wholeDisplay());
    watcher.stop();
    expect(watcher.send(tiles)).toBe(0);
    expect(watcher.waitMs()).toBeUndefined();
    expect(updates).toEqual([]);
  });

  it('gets the whole display, then what has changed, at most as often as it asked for', () => {
    show(wholeDisplay(1));
    watcher.start(SETTINGS);
    sendAll();
    expect(updates.map(({ isCurrent }) => isCurrent)).toEqual([true]);
    show([tile(1, 1, 2)]);
    expect(watcher.waitMs()).toBe(500);
    show([tile(1, 1, 3), tile(2, 2, 3)]);
    now = 500;
    sendAll();
    expect(updates[1]?.regions).toEqual([tile(1, 1, 3), tile(2, 2, 3)]);
    expect(watcher.waitMs()).toBe(500);
    now = 5_000;
    expect(watcher.send(tiles)).toBe(0);
    expect(updates).toHaveLength(2);
  });

  it('gets a large display in parts, the last of which makes it current', () => {
    show(wholeDisplay(1, 10_000));
    watcher.start(SETTINGS);
    sendAll();
    expect(updates.length).toBeGreaterThan(3);
    const most = LIMITS.viewUpdateBytes + LIMITS.viewTileBytes;
    for (const { regions } of updates) {
      expect(regions.reduce((sum, { image }) => sum + image.length, 0)).toBeLessThan(most);
    }
    expect(updates.map(({ isCurrent }) => isCurrent).lastIndexOf(false)).toBe(updates.length - 2);
    expect(Object.values(drawn(updates))).toEqual(Array(70).fill(1));
  });

  it('that confirms nothing gets two updates, and then the newest of each tile at once', () => {
    show(wholeDisplay(1));
    watcher.start(SETTINGS);
    expect(watcher.send(tiles)).toBeGreaterThan(0);
    for (let content = 2; content < 100; content += 1) {
      show([tile(4, 4, content)]);
      now += 1_000;
      if (watcher.waitMs() === 0) watcher.send(tiles);
    }
    expect(updates).toHaveLength(LIMITS.viewUnacknowledged);
    expect(watcher.waitMs()).toBeUndefined();
    watcher.acknowledge(updates[0]?.number ?? 0);
    watcher.send(tiles);
    expect(updates[2]?.regions).toEqual([tile(4, 4, 99)]);
    expect(watcher.waitMs()).toBeUndefined();
  });

  it('that reads slowly, whatever it confirms, waits until it has read', () => {
    show(wholeDisplay(1));
    watcher.start(SETTINGS);
    viewer.unsentBytes = 100_000;
    for (let times = 0; times < 100; times += 1) {
      watcher.acknowledge(0xffff_ffff);
      expect(watcher.waitMs()).toBeGreaterThan(0);
    }
    viewer.unsentBytes = 0;
    expect(watcher.waitMs()).toBe(0);
  });

  it('gets no more bytes than its rate, also when it begins again and again', () => {
    let bytes = 0;
    for (; now < 10_000; now += 100) {
      show(wholeDisplay(now % 256, 15_000));
      if (now % 300 === 0) watcher.stop();
      watcher.start({ fps: 5, quality: 90 });
      bytes += sendAll();
    }
    const perSecond = LIMITS.viewBytesPerSecondAndClient;
    expect(bytes).toBeGreaterThan(9 * perSecond);
    expect(bytes).toBeLessThan(12.5 * perSecond);
  });

  it('that begins again gets the whole display again, under rising numbers', () => {
    show(wholeDisplay(1));
    watcher.start(SETTINGS);
    sendAll();
    watcher.start(SETTINGS);
    sendAll();
    expect(updates.map(({ number, regions }) => [number, regions.length])).toEqual([
      [1, 70],
      [2, 70],
    ]);
  });
});
