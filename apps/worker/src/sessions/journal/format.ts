import type { AgentFrame, ServiceFrame } from '@svc/contract';

/** A frame to store. `n`: the number of the guest's message that carried it, or 0 for a frame of the service. */
export interface NewFrame {
  readonly n: number;
  readonly frame: AgentFrame | ServiceFrame;
}

/** A frame in the journal. `text`: the JSON that clients receive, including `seq` and `ts`. */
export interface StoredFrame {
  readonly seq: number;
  readonly text: string;
}

/** A line of the journal: a stored frame and the number of the guest's message that carried it, or 0. */
export interface JournalRecord extends StoredFrame {
  readonly n: number;
}

const SEQ_AT_END = /(?:,"previous_seq":(\d{1,15}))?,"seq":(\d{1,15}),"ts":"[^"]{1,40}"\}$/;
/** More than the longest match of the expression above. */
const END_CHARS = 128;
const N_AT_START = /^(\d{1,16}) \{"type":"([a-z_]{1,32})"/;

/** The number of a frame, and that of the frame before it if it is not one lower. */
export interface FrameNumber {
  readonly seq: number;
  readonly previousSeq?: number;
}

/** The JSON of a frame. Its type comes first and its numbers and time last, where the parsers look for them. */
export function serializeFrame(
  frame: NewFrame['frame'],
  { seq, previousSeq }: FrameNumber,
  ts: string,
): string {
  const { type, ...fields } = frame;
  // JSON leaves an undefined field out.
  return JSON.stringify({ type, ...fields, previous_seq: previousSeq, seq, ts });
}

/**
 * Whether a task is running after a frame that message `n` of the guest carried; undefined when the frame does not tell. Those
 * that a journal has from an earlier start of the session, with another guest, have no such message.
 */
export function runsTask(n: number, type: string): boolean | undefined {
  if (n === 0) return undefined;
  if (type === 'task_started') return true;
  return type === 'task_completed' ? false : undefined;
}

/** The numbers in a frame's JSON; undefined for text of any other form. */
export function parseNumber(text: string): FrameNumber | undefined {
  const [, previous, seq] = SEQ_AT_END.exec(text.slice(-END_CHARS)) ?? [];
  if (seq === undefined) return undefined;
  return { seq: Number(seq), ...(previous === undefined ? {} : { previousSeq: Number(previous) }) };
}

/** The rotation that a `system` frame announces; undefined for any other event. */
export function parseRotation(
  text: string,
): { readonly bundle: string; readonly version: number } | undefined {
  const frame = JSON.parse(text) as ServiceFrame & { readonly type: 'system' };
  if (frame.event !== 'config_update') return undefined;
  const { bundle, version } = frame;
  return bundle === undefined || version === undefined ? undefined : { bundle, version };
}

/** A line of the journal, including its line feed. */
export function formatRecord({ n, text }: JournalRecord): string {
  return `${n} ${text}\n`;
}

/** Parses a line of the journal; undefined for a damaged one. */
export function parseRecord(
  line: string,
): { readonly type: string; readonly record: JournalRecord } | undefined {
  const [, n, type] = N_AT_START.exec(line) ?? [];
  if (n === undefined || type === undefined) return undefined;
  const text = line.slice(n.length + 1);
  const seq = parseNumber(text)?.seq;
  return seq === undefined ? undefined : { type, record: { n: Number(n), seq, text } };
}
