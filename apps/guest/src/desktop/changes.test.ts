import { createCanvas, loadImage, type SKRSContext2D } from '@napi-rs/canvas';
import { readViewUpdate, type ViewUpdate } from '@svc/contract';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { RunningDesktop } from '../../test/desktop/running-desktop.ts';
import { centreOf } from './desktop.ts';
import { Desktop, DesktopError, type UiElement } from './index.ts';

const QUALITY = 90;
/** Of the squares whose colours are compared: a JPEG changes single pixels much, where the form shows noise. */
const SQUARE = 16;

describe('the changes of a display', { timeout: 120_000 }, () => {
  let running: RunningDesktop;
  let desktop: Desktop;
  let field: UiElement;
  let signal: AbortSignal;

  beforeAll(async () => {
    running = await RunningDesktop.start();
    desktop = new Desktop(running.settings);
    signal = AbortSignal.timeout(60_000);
    field = await vi.waitFor(async () => {
      const { elements } = await desktop.elements(500, signal);
      return elements.find(({ name }) => name === 'Full name') ?? expect.unreachable();
    }, 60_000);
    await desktop.clickElement(field.id, 'left', signal);
  }, 120_000);
  afterAll(() => running.close());
  beforeEach(() => {
    signal = AbortSignal.timeout(60_000);
  });

  async function changes(since: number, quality = QUALITY): Promise<ViewUpdate | undefined> {
    const data = await desktop.changes(since, quality, signal);
    return data.length === 0 ? undefined : readViewUpdate(data);
  }

  async function whole(quality = QUALITY): Promise<ViewUpdate> {
    const update = await changes(0, quality);
    if (update === undefined) throw new Error('there is no display');
    return update;
  }

  /** Draws updates until what they show is what the display shows. */
  async function expectShown(context: SKRSContext2D, { number }: ViewUpdate): Promise<void> {
    let last = number;
    while (await differs(context)) {
      const update = await changes(last);
      if (update === undefined) continue;
      last = update.number;
      await draw(context, update);
    }
  }

  async function differs(context: SKRSContext2D): Promise<boolean> {
    const { data } = await desktop.screenshot({}, signal);
    const seen = meansOf(await pixelsOf(data));
    const drawn = meansOf(context.getImageData(0, 0, 1280, 800).data);
    return seen.some((mean, index) => Math.abs(mean - (drawn[index] ?? 0)) > 6);
  }

  test('are all of it first: tiles that cover it, as a screenshot shows it', async () => {
    const update = await whole();
    expect([update.width, update.height, update.isCurrent]).toEqual([1280, 800, true]);
    const places = update.regions.map(({ x, y, width, height }) => [x, y, width, height]);
    const expected = Array.from({ length: 70 }, (_, at) => {
      const y = Math.floor(at / 10) * 128;
      return [(at % 10) * 128, y, 128, Math.min(128, 800 - y)];
    });
    expect(places).toEqual(expected);
    const { context } = await drawnFrom(update);
    await expectShown(context, update);
  });

  test('are only the tiles in which something has changed', async () => {
    const first = await whole();
    const { context } = await drawnFrom(first);
    await desktop.type('Ada', signal);
    const next = await changes(first.number);
    if (next === undefined) throw new Error('nothing has changed');
    expect(next.number).toBeGreaterThan(first.number);
    expect(next.regions.length).toBeLessThan(20);
    await draw(context, next);
    await expectShown(context, next);
  });

  test('include the pointer', async () => {
    const first = await whole();
    await desktop.move({ x: 1200, y: 700 }, signal);
    await vi.waitFor(async () => {
      const { regions = [] } = (await changes(first.number)) ?? {};
      expect(regions.map(({ x, y }) => [x, y])).toContainEqual([1152, 640]);
    }, 30_000);
  });

  test('are given to several who wait', async () => {
    await desktop.click(centreOf(field), 'left', signal);
    const { number } = await whole();
    const waiting = [changes(number), changes(number)];
    await desktop.type('x', signal);
    for (const update of await Promise.all(waiting)) {
      expect(update?.regions.length).toBeGreaterThan(0);
    }
  });

  test('since a number of another start of the server are all of it', async () => {
    const { number } = await whole();
    for (const unknown of [1, number + 1_000, 0xffff_ffff]) {
      expect((await changes(unknown))?.regions).toHaveLength(70);
    }
  });

  test('have smaller pictures in a lower quality', async () => {
    const bytes = ({ regions }: ViewUpdate) =>
      regions.reduce((sum, { image }) => sum + image.length, 0);
    const [low, high] = [bytes(await whole(20)), bytes(await whole(90))];
    expect(low * 2).toBeLessThan(high);
  });

  test('that nobody waits for any more leave room for others', async () => {
    const stop = new AbortController();
    const { number } = await whole();
    const watch = async () => {
      let since = number;
      while (!stop.signal.aborted) {
        const [asked] = await Promise.allSettled([desktop.changes(since, QUALITY, stop.signal)]);
        if (asked.status === 'fulfilled' && asked.value.length > 0) {
          since = readViewUpdate(asked.value)?.number ?? since;
        }
      }
    };
    const left = Promise.all(Array.from({ length: 16 }, watch));
    await vi.waitFor(
      () => expect(desktop.screenshot({}, signal)).rejects.toThrow('too many requests'),
      30_000,
    );
    stop.abort(new Error('left'));
    await left;
    await vi.waitFor(() => desktop.screenshot({}, signal), 30_000);
  });

  test.each([
    ['too low a quality', 19],
    ['too high a quality', 91],
    ['half a quality', 70.5],
  ])('are not given in %s', async (_what, quality) => {
    await expect(desktop.changes(0, quality, signal)).rejects.toBeInstanceOf(DesktopError);
  });
});

async function pixelsOf(image: Buffer): Promise<Uint8ClampedArray> {
  const canvas = createCanvas(1280, 800);
  const context = canvas.getContext('2d');
  context.drawImage(await loadImage(image), 0, 0);
  return context.getImageData(0, 0, 1280, 800).data;
}

/** The mean of each colour in each square. */
function meansOf(pixels: Uint8ClampedArray): number[] {
  const columns = 1280 / SQUARE;
  const means = Array<number>((columns * 3 * 800) / SQUARE).fill(0);
  for (let at = 0; at < pixels.length; at += 1) {
    const [pixel, colour] = [at >> 2, at & 3];
    const square =
      Math.floor(pixel / 1280 / SQUARE) * columns + Math.floor((pixel % 1280) / SQUARE);
    const mean = square * 3 + colour;
    if (colour < 3) means[mean] = (means[mean] ?? 0) + (pixels[at] ?? 0) / SQUARE ** 2;
  }
  return means;
}

async function draw(context: SKRSContext2D, { regions }: ViewUpdate): Promise<void> {
  for (const { x, y, image } of regions)
    context.drawImage(await loadImage(Buffer.from(image)), x, y);
}

async function drawnFrom(update: ViewUpdate) {
  const context = createCanvas(update.width, update.height).getContext('2d');
  await draw(context, update);
  return { context };
}
