import type { AgentFrame, ServiceFrame } from '@svc/contract';

/** A frame that is to be kept. `n` is the guest's number of the message that brought it; 0: the service made it. */
export interface NewFrame {
  readonly n: number;
  readonly frame: AgentFrame | ServiceFrame;
}

/** A frame in the journal. `text` is the JSON that clients get, with `seq` and `ts`. */
export interface StoredFrame {
  readonly seq: number;
  readonly text: string;
}

const SEQ_AT_END = /,"seq":(\d{1,15}),"ts":"[^"]{1,40}"\}$/;
/** Longer than what the expression above can match. */
const END_CHARS = 128;
const N_AT_START = /^(\d{1,16}) \{"type":"([a-z_]{1,32})"/;

/** The text of a kept frame: type first, number and time last, which is how they are found again. */
export function textOf(frame: NewFrame['frame'], seq: number, ts: string): string {
  const { type, ...fields } = frame;
  return JSON.stringify({ type, ...fields, seq, ts });
}

/** The number of a kept frame's text; undefined for a text that is none. */
export function seqOf(text: string): number | undefined {
  const found = SEQ_AT_END.exec(text.slice(-END_CHARS))?.[1];
  return found === undefined ? undefined : Number(found);
}

/** A line of the journal, with its line feed. */
export function lineOf(n: number, text: string): string {
  return `${n} ${text}\n`;
}

/** What a line of the journal says; undefined for one that is damaged. */
export function readLine(
  line: string,
): { readonly n: number; readonly type: string; readonly frame: StoredFrame } | undefined {
  const [, n, type] = N_AT_START.exec(line) ?? [];
  if (n === undefined || type === undefined) return undefined;
  const text = line.slice(n.length + 1);
  const seq = seqOf(text);
  return seq === undefined ? undefined : { n: Number(n), type, frame: { seq, text } };
}
