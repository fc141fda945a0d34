/** The binary records of the guest's `trees.py`. The guest is hostile: what it sends is checked here. */

import { protocolViolation } from '../channel/read-answer.ts';
import type { ByteReader } from './byte-reader.ts';
import type { TreeEntry, TreeKind, TreeRange, TreeRangeStatus, TreeWrite } from './tree-entry.ts';

const KINDS: ReadonlyMap<number, TreeKind> = new Map([
  [8, 'file'],
  [4, 'directory'],
  [10, 'symlink'],
]);
const DELETED = 0;
const END = 255;
const CODES = { file: 8, directory: 4, symlink: 10, deleted: DELETED } as const;
const STATUSES: readonly TreeRangeStatus[] = ['complete', 'changed', 'gone', 'refused', 'open'];

const RECORD_BYTES = 41;
const RANGE_BYTES = 50;
const ENTRY_BYTES = 33;
export const HOLE = 0x8000_0000;

const MAX_MODE = 0o7777;
const MAX_PATH_BYTES = 4095;
const MAX_NAME_BYTES = 255;
const SLASH = 0x2f;
const NONE = Buffer.alloc(0);

/** A record of a listing. */
type TreeRecord = TreeEntry | { readonly kind: 'deleted'; readonly path: Buffer };

/** The bytes of a record on the wire. */
export function recordBytes(record: TreeRecord): number {
  return RECORD_BYTES + record.path.length + ('target' in record ? record.target.length : 0);
}

/** Reads one record of a listing. A deleted entry has only its path. */
export async function readRecord(reader: ByteReader): Promise<TreeRecord> {
  if (!reader.has(RECORD_BYTES)) await reader.fill(RECORD_BYTES);
  const head = reader.take(RECORD_BYTES);
  const [pathLength, targetLength] = [head.readUInt16BE(37), head.readUInt16BE(39)];
  if (pathLength > MAX_PATH_BYTES || targetLength > MAX_PATH_BYTES) throw protocolViolation();
  if (!reader.has(pathLength + targetLength)) await reader.fill(pathLength + targetLength);
  const path = Buffer.from(reader.take(pathLength));
  if (!isTreePath(path)) throw protocolViolation();
  const code = head.readUInt8(0);
  if (code === DELETED && targetLength === 0) return { kind: 'deleted', path };
  const kind = KINDS.get(code);
  const mode = head.readUInt32BE(1);
  const size = Number(head.readBigUInt64BE(21));
  if (kind === undefined || mode > MAX_MODE || !Number.isSafeInteger(size))
    throw protocolViolation();
  if ((kind === 'symlink') !== targetLength > 0) throw protocolViolation();
  if (kind !== 'file' && size !== 0) throw protocolViolation();
  return {
    kind,
    path,
    mode,
    mtimeNs: head.readBigInt64BE(5),
    ctimeNs: head.readBigInt64BE(13),
    size,
    inode: head.readBigUInt64BE(29),
    target: targetLength === 0 ? NONE : Buffer.from(reader.take(targetLength)),
  };
}

/** Whether these bytes name an entry below the root of a tree. */
export function isTreePath(path: Buffer): boolean {
  if (path.length === 0 || path.length > MAX_PATH_BYTES || path.includes(0)) return false;
  for (let start = 0; start <= path.length; ) {
    const slash = path.indexOf(SLASH, start);
    const end = slash < 0 ? path.length : slash;
    const name = path.subarray(start, end);
    if (name.length === 0 || name.length > MAX_NAME_BYTES || isDots(name)) return false;
    start = end + 1;
  }
  return true;
}

function isDots(name: Buffer): boolean {
  return name.length <= 2 && name.every((byte) => byte === 0x2e);
}

/** The ranges of a read. */
export function encodeRanges(ranges: readonly TreeRange[]): Buffer {
  return Buffer.concat(
    ranges.flatMap(({ file, offset, length }) => {
      const head = Buffer.alloc(RANGE_BYTES);
      head.writeBigUInt64BE(BigInt(offset), 0);
      head.writeBigUInt64BE(BigInt(length), 8);
      head.writeBigUInt64BE(BigInt(file.size), 16);
      head.writeBigUInt64BE(file.inode, 24);
      head.writeBigInt64BE(file.mtimeNs, 32);
      head.writeBigInt64BE(file.ctimeNs, 40);
      head.writeUInt16BE(file.path.length, 48);
      return [head, file.path];
    }),
  );
}

/** The status of a range. */
export function statusOf(code: number): TreeRangeStatus {
  const status = STATUSES[code];
  if (status === undefined) throw protocolViolation();
  return status;
}

/** The head of an entry to write. The content of a file follows it. */
export function encodeEntry(entry: TreeWrite): Buffer {
  const target = entry.kind === 'symlink' ? entry.target : NONE;
  const head = Buffer.alloc(ENTRY_BYTES);
  head.writeUInt8(CODES[entry.kind], 0);
  head.writeUInt32BE('mode' in entry ? entry.mode : 0, 1);
  head.writeBigInt64BE('mtimeNs' in entry ? entry.mtimeNs : 0n, 5);
  if (entry.kind === 'file') {
    head.writeBigUInt64BE(BigInt(entry.offset), 13);
    head.writeBigUInt64BE(BigInt(entry.size), 21);
  }
  head.writeUInt16BE(entry.path.length, 29);
  head.writeUInt16BE(target.length, 31);
  return Buffer.concat([head, entry.path, target]);
}

/** Follows the last entry to write. */
export function endOfEntries(): Buffer {
  const head = Buffer.alloc(ENTRY_BYTES);
  head.writeUInt8(END, 0);
  return head;
}
