import { type StoredFrame, seqOf } from './format.ts';

/** The frames of an earlier history, one a line; what is no frame is left out. */
export function framesOf(history: string): StoredFrame[] {
  const frames: StoredFrame[] = [];
  for (const text of history.split('\n')) {
    const seq = seqOf(text);
    const last = frames.at(-1)?.seq ?? 0;
    if (seq === undefined || seq <= last) continue;
    // Of a history with a hole the newer part counts: nobody is shown a hole.
    if (seq !== last + 1) frames.length = 0;
    frames.push({ seq, text });
  }
  return frames;
}

/** Cuts frames into portions of about so many characters, at least one frame each. */
export function* portionsOf(
  frames: readonly StoredFrame[],
  chars: number,
): Generator<readonly StoredFrame[]> {
  let portion: StoredFrame[] = [];
  let length = 0;
  for (const frame of frames) {
    portion.push(frame);
    length += frame.text.length;
    if (length < chars) continue;
    yield portion;
    portion = [];
    length = 0;
  }
  if (portion.length > 0) yield portion;
}
