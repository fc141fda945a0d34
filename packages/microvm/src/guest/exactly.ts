import { MicrovmError } from '../facade.ts';

/** Passes on exactly `size` bytes and then ends; fails when there are fewer. */
export function exactly(size: number) {
  return async function* passOn(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let left = size;
    if (left === 0) return;
    for await (const chunk of source) {
      const part = chunk.length > left ? chunk.subarray(0, left) : chunk;
      left -= part.length;
      yield part;
      if (left === 0) return;
    }
    throw new MicrovmError(
      'guest_unreachable',
      'the guest closed its channel before the end of the file',
    );
  };
}
