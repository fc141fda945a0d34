import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompress } from 'node:zlib';

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** A higher one takes three times as long for results that are 7 % smaller. */
const LEVEL = 3;

/**
 * Compresses a buffer to one frame of zstd (RFC 8878). The same content gives the same frame, as long as the library stays
 * the same.
 */
export function packZstd(content: Uint8Array): Promise<Buffer> {
  return compress(content, {
    params: { [constants.ZSTD_c_compressionLevel]: LEVEL },
    // With room for the whole result, the library needs one pass and no copy: a third less time than piece by piece.
    chunkSize: largestFrame(content.length),
  });
}

/**
 * Decompresses a frame.
 * @param maxBytes the most that its content may have
 * @param pieceBytes memory is taken in pieces of this size. One that holds the whole content needs half the time of small ones
 * @throws Error when it is no frame, or its content is larger
 */
export function unpackZstd(
  frame: Uint8Array,
  { maxBytes, pieceBytes = maxBytes }: { readonly maxBytes: number; readonly pieceBytes?: number },
): Promise<Buffer> {
  return decompress(frame, {
    maxOutputLength: maxBytes,
    chunkSize: Math.max(pieceBytes, constants.Z_MIN_CHUNK),
  });
}

/** `ZSTD_COMPRESSBOUND` of the library's zstd.h. */
function largestFrame(bytes: number): number {
  const small = 128 * 1024;
  return bytes + (bytes >> 8) + (bytes < small ? (small - bytes) >> 11 : 0);
}
