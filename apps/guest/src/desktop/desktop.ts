import { setTimeout as sleep } from 'node:timers/promises';
import { OperationQueue } from '../operation-queue.ts';
import { DesktopError } from './desktop-error.ts';
import {
  ElementServer,
  type Screenshot,
  type ScreenshotOptions,
  type UiElement,
  type UiElements,
} from './element-server.ts';
import { parseKeys } from './keys.ts';
import { Restarts } from './restarts.ts';
import type { DesktopSettings } from './settings.ts';
import { xdotool } from './xdotool.ts';

/** A position on the display in pixels, counted from its top left corner. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A button of the mouse. */
export type MouseButton = 'left' | 'middle' | 'right';

const BUTTONS: Readonly<Record<MouseButton, string>> = { left: '1', middle: '2', right: '3' };
/** Longest text of one operation, in characters. */
export const MAX_TEXT_CHARS = 4_000;
/** Most steps of the wheel in one operation. */
export const MAX_SCROLL_STEPS = 50;
export const MAX_WAIT_SECONDS = 30;
export const MAX_ELEMENTS = 500;
const MAX_PENDING = 32;
/** Between two keys. Programs lose keys that come faster on an emulated processor. */
const KEY_DELAY_MS = 10;
/** Characters at once that the keyboard layout may lack: a third of its spare keys. */
const MAX_UNUSUAL = 16;
const TYPE_DEADLINE_MS = 240_000;
const RELEASE_DEADLINE_MS = 5_000;

/**
 * The display of a sandbox with its mouse and keyboard. Operations run one after another, whoever asks for them. Each
 * has a deadline, and rejects with a {@link DesktopError} for the agent or client when it fails, such as for a position
 * outside the display, or with the reason of its signal when that aborts.
 */
export class Desktop {
  readonly #settings: DesktopSettings;
  readonly #server: ElementServer;
  readonly #restarts: Restarts;
  readonly #queue = new OperationQueue(
    MAX_PENDING,
    () => new DesktopError('Too many operations at once.'),
  );

  constructor(settings: DesktopSettings) {
    this.#settings = settings;
    this.#server = new ElementServer(settings.server);
    this.#restarts = new Restarts(settings.starts);
  }

  /** A picture of the whole display, with the mouse pointer. */
  async screenshot(options: ScreenshotOptions, signal: AbortSignal): Promise<Screenshot> {
    return await this.#queue.run(signal, () => this.#server.screenshot(options, signal));
  }

  /**
   * What has changed on the display, for a live view; see {@link ElementServer.changes}. It waits for no operation, and
   * none waits for it.
   */
  async changes(since: number, quality: number, signal: AbortSignal): Promise<Buffer> {
    return await this.#server.changes(since, quality, signal);
  }

  /** Moves the mouse. */
  async move(to: Point, signal: AbortSignal): Promise<void> {
    await this.#input(this.#moveTo(to), signal);
  }

  /** Clicks once at a position. */
  async click(at: Point, button: MouseButton, signal: AbortSignal): Promise<void> {
    await this.#input([...this.#moveTo(at), 'click', BUTTONS[button]], signal);
  }

  /** Clicks twice at a position. */
  async doubleClick(at: Point, button: MouseButton, signal: AbortSignal): Promise<void> {
    const click = ['click', '--repeat', '2', '--delay', '60', BUTTONS[button]];
    await this.#input([...this.#moveTo(at), ...click], signal);
  }

  /** Presses a button at a position and holds it. */
  async down(at: Point, button: MouseButton, signal: AbortSignal): Promise<void> {
    await this.#input([...this.#moveTo(at), 'mousedown', BUTTONS[button]], signal);
  }

  /** Releases a button at a position. */
  async up(at: Point, button: MouseButton, signal: AbortSignal): Promise<void> {
    await this.#input([...this.#moveTo(at), 'mouseup', BUTTONS[button]], signal);
  }

  /** Drags from one position to another. The button is released even when that fails or is aborted. */
  async drag(from: Point, to: Point, button: MouseButton, signal: AbortSignal): Promise<void> {
    const { display } = this.#settings;
    // Programs begin to drag only after a few movements.
    const way = [0.1, 0.5, 0.9, 1].flatMap((part) => {
      const between = (a: number, b: number) => Math.round(a + (b - a) * part);
      return [
        ...this.#moveTo({ x: between(from.x, to.x), y: between(from.y, to.y) }),
        'sleep',
        '0.05',
      ];
    });
    const held = [...this.#moveTo(from), 'mousedown', BUTTONS[button], 'sleep', '0.05', ...way];
    const release = ['mouseup', BUTTONS[button]];
    this.#check(to);
    await this.#queue.run(signal, async () => {
      try {
        await xdotool([...held, ...release], { display, signal });
      } catch (error) {
        const deadline = AbortSignal.timeout(RELEASE_DEADLINE_MS);
        // What failed first is more telling than a display that is gone.
        await xdotool(release, { display, signal: deadline }).catch(() => undefined);
        throw error;
      }
    });
  }

  /** Turns the wheel at a position, in steps: `dy` down, `dx` to the right. */
  async scroll(
    at: Point,
    { dx = 0, dy = 0 }: { readonly dx?: number | undefined; readonly dy?: number | undefined },
    signal: AbortSignal,
  ): Promise<void> {
    const turn = (steps: number, forward: string, back: string) => {
      if (!Number.isInteger(steps) || Math.abs(steps) > MAX_SCROLL_STEPS) {
        throw new DesktopError(`Scroll by whole steps, at most ${MAX_SCROLL_STEPS}.`);
      }
      const button = steps > 0 ? forward : back;
      return steps === 0
        ? []
        : ['click', '--repeat', String(Math.abs(steps)), '--delay', '20', button];
    };
    const turns = [...turn(dy, '5', '4'), ...turn(dx, '7', '6')];
    await this.#input([...this.#moveTo(at), ...turns], signal);
  }

  /** Types a text where the keyboard's focus is. A line break is the Return key. */
  async type(text: string, signal: AbortSignal): Promise<void> {
    if (text === '') throw new DesktopError('There is no text to type.');
    if (text.length > MAX_TEXT_CHARS) {
      throw new DesktopError(`At most ${MAX_TEXT_CHARS} characters can be typed at once.`);
    }
    const { display } = this.#settings;
    const args = ['type', '--clearmodifiers', '--delay', String(KEY_DELAY_MS), '--file', '-'];
    await this.#queue.run(signal, async () => {
      for (const piece of piecesOf(text)) {
        if (/[^\x20-\x7e\s]/.test(piece)) await this.#server.bindKeys(piece, signal);
        await xdotool(args, { display, signal, input: piece, deadlineMs: TYPE_DEADLINE_MS });
      }
    });
  }

  /** Presses key combinations such as `ctrl+a`, separated by spaces. */
  async press(keys: string, signal: AbortSignal): Promise<void> {
    await this.#input(['key', '--delay', String(KEY_DELAY_MS), ...parseKeys(keys)], signal);
  }

  /** Waits, at most {@link MAX_WAIT_SECONDS}. */
  async wait(seconds: number, signal: AbortSignal): Promise<void> {
    if (!(seconds >= 0 && seconds <= MAX_WAIT_SECONDS)) {
      throw new DesktopError(`Wait for 0 to ${MAX_WAIT_SECONDS} seconds.`);
    }
    signal.throwIfAborted();
    try {
      await sleep(seconds * 1000, undefined, { signal });
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }

  /** What is on the display, from its top left corner on. */
  async elements(limit: number, signal: AbortSignal): Promise<UiElements> {
    return await this.#queue.run(signal, () => this.#server.elements(limit, signal));
  }

  /** Clicks in the middle of an element, wherever it is now. Returns the element. */
  async clickElement(id: string, button: MouseButton, signal: AbortSignal): Promise<UiElement> {
    return await this.#queue.run(signal, async () => {
      const element = await this.#server.element(id, signal);
      const click = [...this.#moveTo(centreOf(element)), 'click', BUTTONS[button]];
      await xdotool(click, { display: this.#settings.display, signal });
      return element;
    });
  }

  /** A sentence for each program of the desktop that crashed and was started again since the last call. */
  async notices(): Promise<string[]> {
    return await this.#restarts.notices();
  }

  #moveTo(point: Point): string[] {
    this.#check(point);
    return ['mousemove', String(point.x), String(point.y)];
  }

  #check({ x, y }: Point): void {
    const { width, height } = this.#settings;
    const inside = (value: number, size: number) =>
      Number.isInteger(value) && value >= 0 && value < size;
    if (inside(x, width) && inside(y, height)) return;
    throw new DesktopError(
      `${x},${y} is not on the display, which has ${width}×${height} pixels, counted from 0.`,
    );
  }

  async #input(args: readonly string[], signal: AbortSignal): Promise<void> {
    const { display } = this.#settings;
    await this.#queue.run(signal, () => xdotool(args, { display, signal }));
  }
}

/** The text in parts that need few enough keys beyond those of the layout. */
function* piecesOf(text: string): Iterable<string> {
  let piece = '';
  let unusual = new Set<string>();
  for (const character of text) {
    if (character > '\x7e') unusual.add(character);
    if (unusual.size > MAX_UNUSUAL) {
      yield piece;
      piece = '';
      unusual = new Set([character]);
    }
    piece += character;
  }
  yield piece;
}

/** The middle of an element. */
export function centreOf({ box }: UiElement): Point {
  return { x: box.x + Math.floor(box.width / 2), y: box.y + Math.floor(box.height / 2) };
}
