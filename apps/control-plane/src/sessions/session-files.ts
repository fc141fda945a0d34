import { Readable } from 'node:stream';
import { LIMITS, ServiceError } from '@svc/contract';
import { PIECE_BYTES, type Store } from '@svc/store';
import { uuidv7 } from 'uuidv7';
import { isSessionId } from './find.ts';

const FILES_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** The files of a session, as a worker names them. */
export interface FilesRequest {
  readonly workerId: string;
  readonly sessionId: string;
  readonly filesId: string;
}

/** An archive to send to a worker. */
export interface SessionArchive {
  readonly body: Readable;
  readonly length: number;
}

/** Archives of the working files of sessions, for a resume. They are streamed, never held in memory as a whole. */
export class SessionFiles {
  readonly #store: Pick<Store, 'sessions' | 'sessionFiles'>;
  readonly #mostBytes: number;

  constructor(
    store: Pick<Store, 'sessions' | 'sessionFiles'>,
    mostBytes: number = LIMITS.sessionFilesBytes,
  ) {
    this.#store = store;
    this.#mostBytes = mostBytes;
  }

  /**
   * Stores an archive, which is permanent once a turn names it. Storing the same id again changes nothing.
   * @throws ServiceError `session_not_found`, `stale_generation`, `payload_too_large`
   */
  async receive(request: FilesRequest, generation: number, body: Readable): Promise<void> {
    const { sessionId, filesId } = request;
    const { sessionFiles } = this.#store;
    const held = isWellFormed(request)
      ? await this.#store.sessions.heldBy(request.workerId, sessionId, { generation })
      : undefined;
    if (held === undefined) throw new ServiceError('session_not_found');
    if (held.generation !== generation) throw new ServiceError('stale_generation');
    if ((await sessionFiles.find(sessionId, filesId)) !== undefined) return;
    const uploadId = uuidv7();
    await sessionFiles.begin(uploadId, sessionId, filesId);
    try {
      await sessionFiles.finish(uploadId, await this.#write(uploadId, body));
    } catch (error) {
      // The sweeper removes the rest.
      await sessionFiles.discard(uploadId).catch(() => undefined);
      throw error;
    }
  }

  /** Opens an archive for the worker of the session's sandbox. @throws ServiceError `session_not_found`, `file_not_found` */
  async open(request: FilesRequest): Promise<SessionArchive> {
    const { workerId, sessionId, filesId } = request;
    const held = isWellFormed(request)
      ? await this.#store.sessions.heldBy(workerId, sessionId, 'current')
      : undefined;
    if (held === undefined) throw new ServiceError('session_not_found');
    const files = await this.#store.sessionFiles.find(sessionId, filesId);
    if (files === undefined) throw new ServiceError('file_not_found');
    const pieces = this.#pieces(files.uploadId, files.sizeBytes);
    return { body: Readable.from(pieces, { objectMode: false }), length: files.sizeBytes };
  }

  /** Returns the number of bytes. */
  async #write(uploadId: string, body: Readable): Promise<number> {
    let waiting: Buffer[] = [];
    let waitingBytes = 0;
    let total = 0;
    let piece = 0;
    const write = async (): Promise<void> => {
      const bytes = Buffer.concat(waiting);
      waiting = [];
      waitingBytes = 0;
      await this.#store.sessionFiles.addPiece(uploadId, piece, bytes);
      piece += 1;
    };
    for await (const chunk of body as AsyncIterable<Buffer>) {
      total += chunk.length;
      if (total > this.#mostBytes) throw new ServiceError('payload_too_large');
      waiting.push(chunk);
      waitingBytes += chunk.length;
      if (waitingBytes >= PIECE_BYTES) await write();
    }
    if (waitingBytes > 0) await write();
    return total;
  }

  async *#pieces(uploadId: string, sizeBytes: number): AsyncGenerator<Buffer> {
    let sent = 0;
    for (let piece = 0; sent < sizeBytes; piece += 1) {
      const bytes = await this.#store.sessionFiles.piece(uploadId, piece);
      if (bytes === undefined) throw new Error(`The files of a session end before piece ${piece}.`);
      sent += bytes.length;
      yield bytes;
    }
  }
}

function isWellFormed({ sessionId, filesId }: FilesRequest): boolean {
  return isSessionId(sessionId) && FILES_ID.test(filesId);
}
