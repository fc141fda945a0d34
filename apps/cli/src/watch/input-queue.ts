import type { DesktopCallName, DesktopCalls } from '@svc/sdk';

/** What mouse and keyboard of a page do: a call to the desktop of a session. */
export type DesktopInput =
  | { readonly name: 'mouse'; readonly arguments: DesktopCalls['mouse'] }
  | { readonly name: 'keyboard'; readonly arguments: DesktopCalls['keyboard'] };

/** Each waits for the one before it, which may take a second on an emulated processor. */
const MAX_WAITING = 64;
const MAX_TEXT_CHARS = 4_000;
const MAX_COMBINATIONS = 20;
const MAX_SCROLL_STEPS = 50;

export interface InputQueueOptions {
  /** Makes a call; returns whether it was sent. */
  readonly call: <N extends DesktopCallName>(
    name: N,
    input: DesktopCalls[N],
    more: { readonly id: string },
  ) => boolean;
  /** Called when so much waits that inputs are dropped. */
  readonly onFull: () => void;
}

/**
 * Sends the input of a page to the desktop, one call after the other, so that none overtakes another and a slow desktop
 * is not overrun. What can be one call is made one: of several movements of the mouse that wait, the last is sent.
 */
export class InputQueue {
  readonly #options: InputQueueOptions;
  #waiting: DesktopInput[] = [];
  #calls = 0;
  /** The id of the call without an answer. */
  #running: string | undefined;
  /** The button that is held, and where. */
  #held: DesktopCalls['mouse'] | undefined;

  constructor(options: InputQueueOptions) {
    this.#options = options;
  }

  add(input: DesktopInput): void {
    const last = this.#waiting.at(-1);
    const joined = last === undefined ? undefined : join(last, input);
    if (joined !== undefined) this.#waiting[this.#waiting.length - 1] = joined;
    else if (this.#waiting.length < MAX_WAITING) this.#waiting.push(input);
    else this.#options.onFull();
    this.#sendNext();
  }

  /** Whether this id is that of the call that waits for its answer; it has one now. */
  answered(id: string | undefined): boolean {
    if (id === undefined || id !== this.#running) return false;
    this.#running = undefined;
    this.#sendNext();
    return true;
  }

  /** Forgets what waits, and the answer that may never come: the connection was lost. */
  reset(): void {
    this.#waiting = [];
    this.#running = undefined;
  }

  /** Releases a button that is held: the page has gone. */
  release(): void {
    const held = this.#held;
    this.#waiting = [];
    if (held !== undefined) this.add({ name: 'mouse', arguments: { ...held, action: 'up' } });
  }

  #sendNext(): void {
    if (this.#running !== undefined) return;
    const input = this.#waiting.shift();
    if (input === undefined) return;
    this.#calls += 1;
    const id = `svc-input-${this.#calls}`;
    if (this.#call(input, id)) this.#running = id;
  }

  #call(input: DesktopInput, id: string): boolean {
    const { call } = this.#options;
    if (input.name === 'keyboard') return call('keyboard', input.arguments, { id });
    const { action } = input.arguments;
    if (action === 'down') this.#held = input.arguments;
    if (action === 'up') this.#held = undefined;
    return call('mouse', input.arguments, { id });
  }
}

/** One call in place of two that follow each other; undefined if they cannot be one. */
function join(first: DesktopInput, second: DesktopInput): DesktopInput | undefined {
  if (first.name === 'mouse' && second.name === 'mouse') {
    const [before, after] = [first.arguments, second.arguments];
    if (before.action === 'move' && after.action === 'move') return second;
    if (before.action !== 'scroll' || after.action !== 'scroll') return undefined;
    const dx = (before.dx ?? 0) + (after.dx ?? 0);
    const dy = (before.dy ?? 0) + (after.dy ?? 0);
    if (Math.max(Math.abs(dx), Math.abs(dy)) > MAX_SCROLL_STEPS) return undefined;
    return { name: 'mouse', arguments: { ...after, dx, dy } };
  }
  if (first.name === 'keyboard' && second.name === 'keyboard') {
    const text = both(first.arguments.text, second.arguments.text, '');
    if (text !== undefined && text.length <= MAX_TEXT_CHARS) {
      return { name: 'keyboard', arguments: { action: 'type', text } };
    }
    const keys = both(first.arguments.keys, second.arguments.keys, ' ');
    if (keys !== undefined && keys.split(' ').length <= MAX_COMBINATIONS) {
      return { name: 'keyboard', arguments: { action: 'press', keys } };
    }
  }
  return undefined;
}

function both(first: string | undefined, second: string | undefined, between: string) {
  return first === undefined || second === undefined ? undefined : first + between + second;
}
