import type { Socket } from 'node:net';
import { MicrovmError } from '../../microvm-error.ts';
import { KeptConnection } from '../channel/kept-connection.ts';
import { abandonWhenStalled, openConnection } from '../channel/open-request.ts';
import { protocolViolation, readAnswer } from '../channel/read-answer.ts';
import { drained } from '../channel/send-content.ts';
import { withTimeout } from '../with-timeout.ts';
import { ByteReader } from './byte-reader.ts';
import { destroyOnAbort, reasonOf } from './connection-errors.ts';
import type {
  GuestTreeOptions,
  TreeContent,
  TreeEntry,
  TreeListing,
  TreeListRequest,
  TreePiece,
  TreeRange,
  TreeRefusal,
  TreeWrite,
} from './tree-entry.ts';
import {
  encodeEntry,
  encodeRanges,
  endOfEntries,
  HOLE,
  isTreePath,
  readRecord,
  recordBytes,
  statusOf,
} from './tree-format.ts';
import { TreeWatch } from './tree-watch.ts';

/** A busy guest takes long to look at every file of a large tree. */
const LOOK_MS = 120_000;
/** Once the guest has looked, it only has to send what it found. */
const RECEIVE_MS = 30_000;
/** What one listing may make the host keep in memory. */
const MAX_LISTING_BYTES = 128 * 1024 * 1024;
/** A guest is sent at most this many ranges or entries in one request. */
export const TREE_BATCH = 1000;
const MAX_RANGES_BYTES = 1024 * 1024;
/** Small pieces are sent together, in writes of about this size. */
const WRITE_BYTES = 256 * 1024;
const MAX_SEGMENT_BYTES = 1024 * 1024;
const GENERATION = /^[0-9a-f]{32}$/;

/** One tree of files in a guest. See {@link GuestTree}. */
export type MicrovmTree = Pick<GuestTree, 'list' | 'read' | 'write'>;

/**
 * One tree of files in a guest: lists what has changed, reads and writes many files in one request. No symbolic link is
 * followed. The guest is hostile: whatever it answers, the host uses bounded memory, and the paths lie in the tree.
 *
 * Errors: `file_not_found` when there is no such directory, `guest_unreachable`, `timeout`, `internal`.
 */
export class GuestTree {
  readonly #options: GuestTreeOptions;
  /** A connection that is used again costs the guest a tenth of a new one. */
  readonly #kept = new KeptConnection();
  readonly #watch: TreeWatch;
  #last: Pick<TreeListing & TreeListRequest, 'generation' | 'skipped' | 'limit'> | undefined;

  constructor(options: GuestTreeOptions) {
    this.#options = options;
    this.#watch = new TreeWatch(options);
  }

  /**
   * Lists what differs from an earlier listing. Costs the guest a look at each file, unless nothing has changed, and the
   * host what differs.
   * @param whileLooking waits for the guest, of which the host keeps nothing until then
   */
  async list(
    request: TreeListRequest,
    signal: AbortSignal,
    whileLooking: <T>(looked: Promise<T>) => Promise<T> = (looked) => looked,
  ): Promise<TreeListing> {
    const look: Look = (step) => whileLooking(withTimeout(LOOK_MS, signal, step));
    const unchanged = await look((until) => this.#findUnchanged(request, until));
    if (unchanged !== undefined) return unchanged;
    const listing = await this.#listAnew(request, signal, look);
    this.#last = { ...listing, limit: request.limit };
    // Now, so that the first time that nothing has changed does not wait for it.
    if (request.silent === true) await look((until) => this.#watch.open(until));
    return listing;
  }

  async #listAnew(request: TreeListRequest, signal: AbortSignal, look: Look): Promise<TreeListing> {
    const kept = this.#kept.take();
    if (kept !== undefined) {
      try {
        return await this.#list(kept, request, signal, look);
      } catch (error) {
        // The guest has dropped the connection. A listing may be asked for twice.
        const isDropped = error instanceof MicrovmError && error.code === 'guest_unreachable';
        if (!isDropped || signal.aborted) throw error;
      }
    }
    return this.#list(await openConnection(this.#options.address, signal), request, signal, look);
  }

  /**
   * Reads ranges of files, at most `TREE_BATCH` and 1 MiB of paths. A range whose file is written meanwhile, or is no
   * longer the one that was listed, ends with the status `changed`.
   */
  async *read(ranges: readonly TreeRange[], signal: AbortSignal): AsyncGenerator<TreePiece> {
    const encoded = encodeRanges(ranges);
    if (ranges.length > TREE_BATCH || encoded.length > MAX_RANGES_BYTES) {
      throw new RangeError('too many ranges for one request');
    }
    const socket = await this.#connect(signal);
    let isReaderBusy = false;
    const settled = abandonWhenStalled(socket, () => isReaderBusy);
    let isComplete = false;
    try {
      using _aborting = destroyOnAbort(socket, signal);
      this.#send(socket, { op: 'tree-read', size: encoded.length });
      socket.write(encoded);
      await readAnswer(socket, signal);
      const reader = new ByteReader(socket, signal);
      for (const [index, range] of ranges.entries()) {
        for await (const piece of readRange(reader, index, range)) {
          isReaderBusy = true;
          yield piece;
          isReaderBusy = false;
        }
      }
      isComplete = true;
    } catch (error) {
      throw reasonOf(error, signal);
    } finally {
      settled();
      if (isComplete) this.#kept.keep(socket);
      else socket.destroy();
    }
  }

  /** Writes entries in order, at most `TREE_BATCH`. Returns those that the guest could not write. */
  async write(
    entries: Iterable<TreeWrite> | AsyncIterable<TreeWrite>,
    signal: AbortSignal,
  ): Promise<readonly TreeRefusal[]> {
    const socket = await this.#connect(signal);
    return this.#use(socket, signal, async () => {
      this.#send(socket, { op: 'tree-write', limit: TREE_BATCH });
      const answered = readAnswer(socket, signal);
      // Awaited below. A guest that refuses early must not cause an unhandled rejection.
      answered.catch(() => undefined);
      const count = await sendEntries(socket, entries, signal);
      return parseRefusals(await answered, count);
    });
  }

  /** Closes the idle connection. */
  close(): void {
    this.#kept.close();
    this.#watch.close();
  }

  /** The listing when nothing at all has happened since the one before. Undefined when the guest has to look. */
  async #findUnchanged(
    { since, limit, silent = false, full = false }: TreeListRequest,
    signal: AbortSignal,
  ): Promise<TreeListing | undefined> {
    const last = this.#last;
    if (silent || full || last === undefined) return undefined;
    const { generation, skipped } = last;
    if (generation !== since || last.limit !== limit) return undefined;
    if (!(await this.#watch.isUnchanged(generation, signal))) return undefined;
    return { generation, complete: false, skipped, changed: [], deleted: [] };
  }

  async #list(
    socket: Socket,
    { since, limit, silent = false, full = false }: TreeListRequest,
    signal: AbortSignal,
    look: Look,
  ): Promise<TreeListing> {
    let hasLooked = false;
    const list = async () => {
      this.#send(socket, { op: 'tree-list', since, limit, silent, full });
      const answer = await look(async (until) => {
        const received = await readAnswer(socket, until);
        hasLooked = true;
        return received;
      });
      hasLooked = false;
      const head = parseHead(answer, limit);
      const records = (until: AbortSignal) => {
        return readRecords(new ByteReader(socket, until), head, limit);
      };
      const { generation, complete, skipped } = head;
      return { generation, complete, skipped, ...(await withTimeout(RECEIVE_MS, signal, records)) };
    };
    // A guest that has looked waits until the host goes on.
    return this.#use(socket, signal, list, () => hasLooked);
  }

  /**
   * Keeps the connection for the next request when this one succeeds.
   * @param isHeldUp whether the guest waits for this side
   */
  async #use<T>(
    socket: Socket,
    signal: AbortSignal,
    request: () => Promise<T>,
    isHeldUp?: () => boolean,
  ): Promise<T> {
    const settled = abandonWhenStalled(socket, isHeldUp);
    try {
      using _aborting = destroyOnAbort(socket, signal);
      const result = await request();
      settled();
      this.#kept.keep(socket);
      return result;
    } catch (error) {
      socket.destroy();
      throw reasonOf(error, signal);
    }
  }

  async #connect(signal: AbortSignal): Promise<Socket> {
    return this.#kept.take() ?? openConnection(this.#options.address, signal);
  }

  #send(socket: Socket, request: Readonly<Record<string, unknown>>): void {
    const { token, root } = this.#options;
    socket.write(`${JSON.stringify({ ...request, root, token })}\n`);
  }
}

/** A step that waits for the guest to look at its files. */
type Look = <T>(step: (until: AbortSignal) => Promise<T>) => Promise<T>;

type Head = ReturnType<typeof parseHead>;

async function readRecords(
  reader: ByteReader,
  { records, size, complete }: Head,
  limit: number,
): Promise<Pick<TreeListing, 'changed' | 'deleted'>> {
  const changed: TreeEntry[] = [];
  const deleted: Buffer[] = [];
  let left = size;
  for (let index = 0; index < records; index += 1) {
    const record = await readRecord(reader);
    left -= recordBytes(record);
    if (left < 0) throw protocolViolation();
    if (record.kind === 'deleted') deleted.push(record.path);
    else changed.push(record);
    // At most as many entries are deleted as the tree may have, and as many are new.
    if (changed.length > limit || deleted.length > limit) throw protocolViolation();
  }
  if (complete && deleted.length > 0) throw protocolViolation();
  return { changed, deleted };
}

function parseHead(answer: Readonly<Record<string, unknown>>, limit: number) {
  const { generation, complete, skipped, records, size } = answer;
  if (typeof generation !== 'string' || !GENERATION.test(generation)) throw protocolViolation();
  if (typeof complete !== 'boolean') throw protocolViolation();
  if (!isCount(skipped) || !isCount(records) || records > 2 * limit) throw protocolViolation();
  if (!isCount(size) || size > MAX_LISTING_BYTES) throw protocolViolation();
  return { generation, complete, skipped, records, size };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

async function* readRange(
  reader: ByteReader,
  range: number,
  { length }: TreeRange,
): AsyncGenerator<TreePiece> {
  let left = length;
  for (;;) {
    if (!reader.has(4)) await reader.fill(4);
    const size = reader.take(4).readUInt32BE();
    if (size === 0) break;
    const bytes = size % HOLE;
    if (bytes === 0 || bytes > left) throw protocolViolation();
    left -= bytes;
    if (size >= HOLE) yield { range, content: { hole: bytes } };
    else yield* readSegment(reader, range, bytes);
  }
  if (!reader.has(1)) await reader.fill(1);
  const status = statusOf(reader.take(1).readUInt8());
  yield { range, status };
}

async function* readSegment(
  reader: ByteReader,
  range: number,
  size: number,
): AsyncGenerator<TreePiece> {
  for (let left = size; left > 0; ) {
    const content = await reader.some(left);
    left -= content.length;
    yield { range, content };
  }
}

/** Sends the entries and waits when the guest reads slowly. Returns their number. */
async function sendEntries(
  socket: Socket,
  entries: Iterable<TreeWrite> | AsyncIterable<TreeWrite>,
  signal: AbortSignal,
): Promise<number> {
  const sender = new Sender(socket, signal);
  let count = 0;
  for await (const entry of entries) {
    if (count === TREE_BATCH) throw new RangeError('too many entries for one request');
    if (!isTreePath(entry.path)) throw new RangeError('this is not a path in a tree');
    count += 1;
    await sender.add(encodeEntry(entry));
    if (entry.kind !== 'file') continue;
    for await (const piece of entry.content) await sender.addContent(piece);
    await sender.add(lengthOf(0));
  }
  await sender.add(endOfEntries());
  await sender.flush();
  return count;
}

class Sender {
  readonly #socket: Socket;
  readonly #signal: AbortSignal;
  #parts: Buffer[] = [];
  #size = 0;

  constructor(socket: Socket, signal: AbortSignal) {
    this.#socket = socket;
    this.#signal = signal;
  }

  async add(bytes: Buffer): Promise<void> {
    this.#parts.push(bytes);
    this.#size += bytes.length;
    if (this.#size >= WRITE_BYTES) await this.flush();
  }

  async addContent(content: TreeContent): Promise<void> {
    if (!Buffer.isBuffer(content)) {
      for (let left = content.hole; left > 0; left -= HOLE - 1) {
        await this.add(lengthOf(HOLE + Math.min(left, HOLE - 1)));
      }
      return;
    }
    for (let at = 0; at < content.length; at += MAX_SEGMENT_BYTES) {
      const segment = content.subarray(at, at + MAX_SEGMENT_BYTES);
      await this.add(lengthOf(segment.length));
      await this.add(segment);
    }
  }

  async flush(): Promise<void> {
    this.#signal.throwIfAborted();
    if (this.#socket.destroyed) {
      throw new MicrovmError('guest_unreachable', 'the guest closed its channel');
    }
    const ready = this.#socket.write(Buffer.concat(this.#parts, this.#size));
    this.#parts = [];
    this.#size = 0;
    if (!ready) await drained(this.#socket, this.#signal);
  }
}

function lengthOf(size: number): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(size);
  return length;
}

function parseRefusals(
  { refused }: Readonly<Record<string, unknown>>,
  count: number,
): readonly TreeRefusal[] {
  if (!Array.isArray(refused) || refused.length > count) throw protocolViolation();
  return refused.map((item: unknown) => {
    const [index, code] = Array.isArray(item) ? item : [];
    if (!isCount(index) || index >= count || typeof code !== 'string') throw protocolViolation();
    return { index, code: code.slice(0, 64) };
  });
}
