import { SvcError } from '../errors.ts';
import type { RawAnswer } from './request.ts';

/** A file being read. `size` is in bytes, undefined if the service did not send it. */
export interface FileDownload {
  readonly size: number | undefined;
  readonly stream: ReadableStream<Uint8Array>;
}

/** Reads the whole body of a response into memory. @throws SvcError `stream_ended`, or when the deadline passes */
export async function downloadAll({ response, deadline }: RawAnswer): Promise<Uint8Array> {
  try {
    return new Uint8Array(await response.arrayBuffer());
  } catch (cause) {
    if (deadline.signal.aborted) throw deadline.failure();
    const detail = 'The file was cut off on its way; try again.';
    throw new SvcError({ code: 'stream_ended', detail, status: response.status, cause });
  }
}

/** The body of a response as a stream, with its size. */
export function downloadOf({ response }: RawAnswer): FileDownload {
  const length = response.headers.get('content-length');
  return {
    size: length === null ? undefined : Number(length),
    stream: response.body ?? new Blob([]).stream(),
  };
}
