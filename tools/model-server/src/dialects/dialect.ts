/** The interface of the wire formats: each reads a conversation and writes an answer. */

export type DialectName = 'anthropic' | 'chat-completions' | 'responses' | 'google';

/** The parts of a request that rules can match. */
export interface Conversation {
  readonly model: string;
  readonly system: string;
  /** The latest text of the user; empty if there is none. */
  readonly user: string;
  /** The latest tool result, if nothing follows it. */
  readonly tool: string | undefined;
  readonly stream: boolean;
}

/** Token usage of one request. `input` includes the cached tokens. */
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
  /** Unique within the server. */
  readonly id: string;
  readonly model: string;
  readonly chunks: readonly string[];
  readonly calls: readonly ToolCall[];
  readonly usage: Usage;
}

/** One part of a stream. */
export interface StreamPart {
  /** The bytes on the wire, as text. */
  readonly wire: string;
  /** Whether this is a chunk of the text. */
  readonly isChunk: boolean;
}

export interface Dialect {
  readonly name: DialectName;
  /** Whether requests to a path, without its query, use this dialect. */
  matches(path: string): boolean;
  read(body: unknown, url: URL): Conversation;
  /** The parts of a streamed answer, in order. */
  stream(answer: Answer, body: unknown, url: URL): StreamPart[];
  /** The complete answer to a request without streaming. */
  whole(answer: Answer, body: unknown): unknown;
  /** The body of an error. */
  failure(status: number, message: string): unknown;
}

/** Splits a text in two. Streams send tool arguments this way, so that clients have to join the parts. */
export function inHalves(text: string): [string, string] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
}

/** A server-sent event with JSON data, and with a name if `event` is given. */
export function serverSentEvent(data: unknown, event?: string): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  return `${name}data: ${JSON.stringify(data)}\n\n`;
}
