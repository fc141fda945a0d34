/** Length of the longest prefix of `bytes`, at most `limit`, that does not cut a UTF-8 character. */
export function wholeCharacters(bytes: Uint8Array, limit: number): number {
  if (limit >= bytes.length) return bytes.length;
  let end = Math.max(0, limit);
  // A character has at most three continuation bytes; anything longer is not UTF-8 and may be cut anywhere.
  for (let back = 0; back < 4 && end > 0 && isContinuation(bytes[end]); back += 1) end -= 1;
  return isContinuation(bytes[end]) ? Math.max(0, limit) : end;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
