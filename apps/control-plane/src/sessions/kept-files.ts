import { Readable } from 'node:stream';
import { LIMITS, ServiceError } from '@svc/contract';
import { PIECE_BYTES, type Store } from '@svc/store';
import { uuidv7 } from 'uuidv7';
import { isSessionId } from './find.ts';

const FILES_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Which files of which session, and for which worker. */
export interface FilesRequest {
  readonly workerId: string;
  readonly sessionId: string;
  readonly filesId: string;
}

/** An archive on its way to a worker. */
export interface KeptArchive {
  readonly body: Readable;
  readonly length: number;
}

/** Working files of sessions, which workers leave here for a resume. Never held as a whole. */
export class KeptFiles {
  readonly #store: Pick<Store, 'sessions' | 'sessionFiles'>;

  constructor(store: Pick<Store, 'sessions' | 'sessionFiles'>) {
    this.#store = store;
  }

  /**
   * Takes files in. They last once a turn names them. The same id again changes nothing.
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
      // What stays behind is swept.
      await sessionFiles.discard(uploadId).catch(() => undefined);
      throw error;
    }
  }

  /** Gives files back to the worker of the session's sandbox. @throws ServiceError `session_not_found`, `file_not_found` */
  async open(request: FilesRequest): Promise<KeptArchive> {
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

  /** Answers how many bytes there were. */
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
      if (total > LIMITS.sessionFilesBytes) throw new ServiceError('payload_too_large');
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
      if (bytes === undefined) throw new Error(`Files of a session end at piece ${piece}.`);
      sent += bytes.length;
      yield bytes;
    }
  }
}

function isWellFormed({ sessionId, filesId }: FilesRequest): boolean {
  return isSessionId(sessionId) && FILES_ID.test(filesId);
}
