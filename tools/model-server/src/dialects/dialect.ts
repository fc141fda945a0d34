/** What the wire formats have in common: each reads a conversation and writes an answer its own way. */

export type DialectName = 'anthropic' | 'chat-completions' | 'responses' | 'google';

/** A request, as far as rules look at it. */
export interface Conversation {
  readonly model: string;
  readonly system: string;
  /** The latest text of the user; empty when there is none. */
  readonly user: string;
  /** The latest tool result, when nothing came after it. */
  readonly tool: string | undefined;
  readonly stream: boolean;
}

/** Tokens of one request; `input` is all of the input, the cached part with it. */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cached: number;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: unknown;
}

export interface Answer {
  /** Unique on this server. */
  readonly id: string;
  readonly model: string;
  readonly chunks: readonly string[];
  readonly calls: readonly ToolCall[];
  readonly usage: Usage;
}

/** One piece of a stream as it goes over the wire; `isChunk` for a part of the text. */
export interface StreamPart {
  readonly wire: string;
  readonly isChunk: boolean;
}

export interface Dialect {
  readonly name: DialectName;
  /** Whether requests to this path (without its query) are in this dialect. */
  matches(path: string): boolean;
  read(body: unknown, url: URL): Conversation;
  /** The parts of a streamed answer, in their order. */
  stream(answer: Answer, body: unknown, url: URL): StreamPart[];
  /** The whole answer, for a request that wants no stream. */
  whole(answer: Answer, body: unknown): unknown;
  /** The body of a failing answer. */
  failure(status: number, message: string): unknown;
}

/** Text that a stream sends in one piece: arguments come in two, so that clients have to join them. */
export function inHalves(text: string): [string, string] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
}

/** A server-sent event with JSON in it, named where `event` is given. */
export function serverSentEvent(data: unknown, event?: string): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  return `${name}data: ${JSON.stringify(data)}\n\n`;
}
