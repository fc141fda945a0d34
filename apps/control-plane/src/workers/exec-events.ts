import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import {
  ERRORS,
  ExecErrorEvent,
  type ExecEvent,
  ExecExitEvent,
  ExecOutputEvent,
  isErrorCode,
} from '@svc/contract';
import { formatEvent } from '@svc/service-kit';
import { Compile } from 'typebox/compile';
import { type AnswerForm, BadAnswer } from './read-answer.ts';

/** Workers send output in much smaller chunks, which JSON can make six times as long. */
const MAX_EVENT_CHARS = 4 * 1024 * 1024;
const END = '\n\n';
const EVENT = /^event: ([a-z]+)\ndata: (.*)$/;
const CODE = 'worker_bad_response';

const output = Compile(ExecOutputEvent);
const FORMS: Readonly<Record<ExecEvent['event'], AnswerForm<unknown>>> = {
  stdout: output,
  stderr: output,
  exit: Compile(ExecExitEvent),
  error: Compile(ExecErrorEvent),
};

/** A server-sent event as it was sent; without a value if it is a comment. */
interface SentEvent {
  readonly text: string;
  readonly value?: ExecEvent;
}

/** The events of a command. @throws BadAnswer after the events before the first that does not match the contract */
export async function* readEvents(body: Readable): AsyncGenerator<SentEvent> {
  const check = new EventCheck();
  for await (const chunk of body as AsyncIterable<Buffer>) yield* check.accept(chunk);
  check.end();
}

/**
 * Passes the server-sent events of a streamed command on as long as they match the contract. The first one that
 * does not ends the stream: `onBad` gets the reason, the reader an `error` event.
 */
export async function* checkedEvents(
  body: Readable,
  onBad: (reason: BadAnswer) => void,
): AsyncGenerator<string> {
  try {
    for await (const { text } of readEvents(body)) yield text;
  } catch (error) {
    if (!(error instanceof BadAnswer)) throw error;
    onBad(error);
    yield formatEvent('error', { code: CODE, message: ERRORS[CODE].detail });
  }
}

class EventCheck {
  readonly #decoder = new StringDecoder('utf8');
  /** The beginning of an event, in pieces: joining them for each new one would take time that grows with their square. */
  #pending: string[] = [];
  #pendingChars = 0;
  #isOver = false;

  /** Yields the events that this chunk completes. @throws BadAnswer after the events before the bad one */
  *accept(chunk: Buffer): Generator<SentEvent> {
    // An end may lie on both sides of the border between two pieces.
    const text = this.#takeLastChar() + this.#decoder.write(chunk);
    let start = 0;
    for (;;) {
      const end = text.indexOf(END, start);
      if (end < 0) break;
      const event = this.#takePending() + text.slice(start, end);
      const value = this.#check(event);
      start = end + END.length;
      yield { text: event + END, ...(value === undefined ? {} : { value }) };
    }
    this.#addPending(text.slice(start));
    if (this.#pendingChars > MAX_EVENT_CHARS) throw new BadAnswer('an event has no end');
  }

  end(): void {
    if (this.#pendingChars > 0) throw new BadAnswer('the stream ends within an event');
    if (!this.#isOver) throw new BadAnswer('the stream ends without an exit or error event');
  }

  #addPending(text: string): void {
    if (text === '') return;
    this.#pending.push(text);
    this.#pendingChars += text.length;
  }

  #takePending(): string {
    const text = this.#pending.join('');
    this.#pending = [];
    this.#pendingChars = 0;
    return text;
  }

  #takeLastChar(): string {
    const last = this.#pending.pop() ?? '';
    this.#pendingChars -= last.length;
    this.#addPending(last.slice(0, -1));
    return last.slice(-1);
  }

  #check(event: string): ExecEvent | undefined {
    if (event.startsWith(':') && !event.includes('\n')) return undefined;
    if (this.#isOver) throw new BadAnswer('events follow the last one');
    const [, name = '', data = ''] = EVENT.exec(event) ?? [];
    if (!isEventName(name)) throw new BadAnswer('the stream holds an unknown event');
    const value = parse(data);
    if (!FORMS[name].Check(value)) throw new BadAnswer(`the data of ${name} has another form`);
    if (name === 'error' && !isErrorCode((value as ExecErrorEvent).code)) {
      throw new BadAnswer('the error code is unknown');
    }
    this.#isOver = name === 'exit' || name === 'error';
    return { event: name, data: value } as ExecEvent;
  }
}

function isEventName(name: string): name is ExecEvent['event'] {
  return Object.hasOwn(FORMS, name);
}

/** The value of a JSON text; undefined when it is not JSON. */
function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
