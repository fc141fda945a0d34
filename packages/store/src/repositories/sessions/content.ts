const ID_BYTES = 32;

/** Content that is in the object store, as chunks in their order. A chunk may be repeated. */
export interface StoredContent {
  /** Size of the content of all chunks. */
  readonly sizeBytes: number;
  readonly chunkIds: readonly Buffer[];
}

/** Part of a transcript: the bytes themselves, or where they are. */
export type Content = Buffer | StoredContent;

/** Whether content is in the object store. */
export function isStored(content: Content | undefined): content is StoredContent {
  return content !== undefined && !Buffer.isBuffer(content);
}

/** The size of content in bytes. */
export function sizeOf(content: Content): number {
  return isStored(content) ? content.sizeBytes : content.length;
}

/** The ids of chunks as one value of a column. */
export function joinIds(ids: readonly Buffer[]): Buffer {
  return Buffer.concat([...ids]);
}

/** The ids of chunks in a value of {@link joinIds}. */
export function splitIds(bytes: Buffer): Buffer[] {
  return Array.from({ length: bytes.length / ID_BYTES }, (_, index) =>
    bytes.subarray(index * ID_BYTES, (index + 1) * ID_BYTES),
  );
}
