/** The bytes of a chunk's id, from its text on the wire. */
export function chunkBytesOf(id: string): Buffer {
  return Buffer.from(id, 'base64url');
}

/** The text of a chunk's id on the wire. */
export function chunkTextOf(id: Buffer): string {
  return id.toString('base64url');
}
