import { parseNumber, type StoredFrame } from './format.ts';

/** Parses the history of a resumed session, one frame a line. Skips lines that are not frames. */
export function parseHistory(history: string): StoredFrame[] {
  const frames: StoredFrame[] = [];
  for (const text of history.split('\n')) {
    const number = parseNumber(text);
    const last = frames.at(-1)?.seq ?? 0;
    if (number === undefined || number.seq <= last) continue;
    // A replay must not have a gap, so only the frames after the last gap count. A marked jump is none.
    if ((number.previousSeq ?? number.seq - 1) !== last) frames.length = 0;
    frames.push({ seq: number.seq, text });
  }
  return frames;
}

/** Splits frames into chunks of consecutive numbers and about `chars` characters, with at least one frame each. */
export function* chunksOf(
  frames: readonly StoredFrame[],
  chars: number,
): Generator<readonly StoredFrame[]> {
  let chunk: StoredFrame[] = [];
  let length = 0;
  for (const frame of frames) {
    const last = chunk.at(-1);
    if (last !== undefined && (length >= chars || frame.seq !== last.seq + 1)) {
      yield chunk;
      chunk = [];
      length = 0;
    }
    chunk.push(frame);
    length += frame.text.length;
  }
  if (chunk.length > 0) yield chunk;
}
