import { Readable } from 'node:stream';
import { ServiceError } from '@svc/contract';
import type { Store } from '@svc/store';
import { isSessionId } from '../find.ts';

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

/**
 * Archives of the working files of sessions that were stored in the database, before there were chunks in the object
 * store. They are streamed, never held in memory as a whole.
 */
export class EarlierFiles {
  readonly #store: Pick<Store, 'sessions' | 'sessionFiles'>;

  constructor(store: Pick<Store, 'sessions' | 'sessionFiles'>) {
    this.#store = store;
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
