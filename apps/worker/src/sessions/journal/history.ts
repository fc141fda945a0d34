import { parseSeq, type StoredFrame } from './format.ts';

/** Parses the history of a resumed session, one frame a line. Skips lines that are not frames. */
export function parseHistory(history: string): StoredFrame[] {
  const frames: StoredFrame[] = [];
  for (const text of history.split('\n')) {
    const seq = parseSeq(text);
    const last = frames.at(-1)?.seq ?? 0;
    if (seq === undefined || seq <= last) continue;
    // A replay must not have a gap, so only the frames after the last gap count.
    if (seq !== last + 1) frames.length = 0;
    frames.push({ seq, text });
  }
  return frames;
}

/** Splits frames into chunks of about `chars` characters, with at least one frame each. */
export function* chunksOf(
  frames: readonly StoredFrame[],
  chars: number,
): Generator<readonly StoredFrame[]> {
  let chunk: StoredFrame[] = [];
  let length = 0;
  for (const frame of frames) {
    chunk.push(frame);
    length += frame.text.length;
    if (length < chars) continue;
    yield chunk;
    chunk = [];
    length = 0;
  }
  if (chunk.length > 0) yield chunk;
}
