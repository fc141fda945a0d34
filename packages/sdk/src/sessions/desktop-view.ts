import {
  type ClientFrame,
  LIMITS,
  readViewUpdate,
  type ViewUpdate,
  type WatchArguments,
} from '@svc/contract';
import { SvcError } from '../errors.ts';
import { type SessionFrame, seqOf } from './frames.ts';

/** With which the ids of the calls of views begin. */
const ID_PREFIX = 'svc-view-';

type Result = IteratorResult<ViewUpdate, undefined>;
type ViewAnswer = Extract<SessionFrame, { type: 'error' | 'tool_result' }>;

/** Whether a frame answers the call of a view, also of one that has ended. */
export function isViewAnswer(frame: SessionFrame): frame is ViewAnswer {
  if (frame.type !== 'error' && frame.type !== 'tool_result') return false;
  return seqOf(frame) === undefined && frame.id?.startsWith(ID_PREFIX) === true;
}

/** The connection of a view, as far as the view uses it. */
export interface ViewParts {
  /** Sends a frame now; drops it while there is no connection. */
  readonly send: (frame: ClientFrame) => void;
  /** Called once, when the view has ended. */
  readonly onEnd: () => void;
}

/**
 * The live view of a session's desktop: updates to be drawn one after the other, the whole display first, also after a
 * reconnect. An update is confirmed to the service when the next one is asked for: whoever draws slowly gets fewer and
 * newer pictures. Ends with the connection, or when the loop over it is left.
 */
export class DesktopView implements AsyncIterableIterator<ViewUpdate, undefined> {
  readonly #settings: WatchArguments;
  readonly #parts: ViewParts;
  readonly #id: string;
  #updates: ViewUpdate[] = [];
  #waiting: PromiseWithResolvers<Result> | undefined;
  /** Whether the service has begun the view. What comes before belongs to an earlier one. */
  #hasBegun = false;
  /** The number of the update that was given out, until it is confirmed. */
  #given: number | undefined;
  #end: { readonly error?: unknown } | undefined;

  /** `number`: of no other view of the connection. */
  constructor(number: number, settings: WatchArguments, parts: ViewParts) {
    this.#id = `${ID_PREFIX}${number}`;
    this.#settings = settings;
    this.#parts = parts;
  }

  /** Asks for the view; once for each WebSocket. */
  start(): void {
    this.#updates = [];
    this.#given = undefined;
    this.#hasBegun = false;
    this.#call('watch', { ...this.#settings });
  }

  /** Takes a message of the service. */
  receive(message: Uint8Array): void {
    const update = readViewUpdate(message);
    if (update === undefined || !this.#hasBegun || this.#end !== undefined) return;
    if (this.#waiting !== undefined) this.#give(this.#waiting, update);
    else if (this.#updates.length < LIMITS.viewUnacknowledged) this.#updates.push(update);
    else {
      const detail = 'The service sent more of the view than was asked for; watch again.';
      this.finish({ error: new SvcError({ code: 'invalid_response', detail }) });
    }
  }

  /** Takes the answer to a call of any view of the connection. A refusal of this one ends it. */
  answered(answer: ViewAnswer): void {
    if (answer.id !== this.#id) return;
    if (answer.type === 'error') {
      this.finish({ error: new SvcError({ code: answer.code, detail: answer.message }) });
    } else if (answer.is_error) {
      this.finish({ error: new SvcError({ code: 'watch_refused', detail: answer.content }) });
    } else {
      this.#hasBegun = true;
    }
  }

  /** Ends the view, with an error or without one. */
  finish(end: { readonly error?: unknown }): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#updates = [];
    this.#parts.onEnd();
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting !== undefined) this.#ended(end).then(waiting.resolve, waiting.reject);
  }

  /** Confirms the update before, and waits for the next one. One call at a time. */
  async next(): Promise<Result> {
    if (this.#end !== undefined) return this.#ended(this.#end);
    if (this.#waiting !== undefined) throw new Error('an update is being waited for already');
    if (this.#given !== undefined) this.#parts.send({ type: 'view_ack', number: this.#given });
    this.#given = undefined;
    const waiting = Promise.withResolvers<Result>();
    this.#waiting = waiting;
    const update = this.#updates.shift();
    if (update !== undefined) this.#give(waiting, update);
    return waiting.promise;
  }

  /** Ends the view. */
  async return(): Promise<Result> {
    if (this.#end === undefined) this.#call('unwatch', {});
    this.finish({});
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #give(waiting: PromiseWithResolvers<Result>, update: ViewUpdate): void {
    this.#waiting = undefined;
    this.#given = update.number;
    waiting.resolve({ done: false, value: update });
  }

  #call(name: 'watch' | 'unwatch', input: Record<string, unknown>): void {
    this.#parts.send({ type: 'tool_call', id: this.#id, name, arguments: input });
  }

  /** Throws the error once; later calls report the end. */
  async #ended(end: { readonly error?: unknown }): Promise<Result> {
    this.#end = {};
    if ('error' in end) throw end.error;
    return { done: true, value: undefined };
  }
}
