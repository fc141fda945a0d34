import { ChunkSecret, ChunkUrls, MissingChunks, type UploadChunksRequest } from '@svc/contract';
import { answerOf, type ControlPlaneTransport } from './control-plane-transport.ts';

const DEADLINE_MS = 15_000;

const secretAnswer = answerOf<ChunkSecret>(ChunkSecret);
const missingAnswer = answerOf<MissingChunks>(MissingChunks);
const urlsAnswer = answerOf<ChunkUrls>(ChunkUrls);

/** A path below the internal prefix, and the generation that every call names. */
export interface ChunksLocation {
  readonly path: string;
  readonly generation: number;
}

/**
 * The control plane's knowledge of stored chunks, whose owner is a session or a workspace. Calls fail with a
 * `ControlPlaneError` `stale_generation` when the owner has been started again since. Each has a time limit; none is
 * retried here. At most 256 chunks a call.
 */
export class ChunksApi<Owner> {
  readonly #transport: Pick<ControlPlaneTransport, 'json' | 'done'>;
  readonly #locate: (owner: Owner) => ChunksLocation;

  /** @param locate where the routes of this owner's chunks are */
  constructor(
    transport: Pick<ControlPlaneTransport, 'json' | 'done'>,
    locate: (owner: Owner) => ChunksLocation,
  ) {
    this.#transport = transport;
    this.#locate = locate;
  }

  /** The secret of the owner's chunks, 32 bytes. */
  async secret(owner: Owner, signal: AbortSignal): Promise<Buffer> {
    const location = this.#locate(owner);
    const path = `${location.path}/chunk-secret?generation=${location.generation}`;
    const call = { method: 'GET', path, signal, deadlineMs: DEADLINE_MS } as const;
    const { secret } = await this.#transport.json(call, secretAnswer);
    return Buffer.from(secret, 'base64');
  }

  /** Which of these chunks have to be uploaded. The others stay stored for a while. */
  async missing(
    owner: Owner,
    ids: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const call = post(this.#locate(owner), 'missing', { ids }, signal);
    return (await this.#transport.json(call, missingAnswer)).ids;
  }

  /** Where to upload these chunks, by id. Leaves out those that are stored by now. */
  async announce(
    owner: Owner,
    chunks: UploadChunksRequest['chunks'],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    return byId(
      await this.#transport.json(
        post(this.#locate(owner), 'uploads', { chunks }, signal),
        urlsAnswer,
      ),
    );
  }

  /** Has the control plane look for uploaded chunks. Fails with `file_not_found` when one is not there. */
  async confirm(owner: Owner, ids: readonly string[], signal: AbortSignal): Promise<void> {
    await this.#transport.done(post(this.#locate(owner), 'uploaded', { ids }, signal));
  }

  /** Where to download these chunks, by id. Fails with `file_not_found` when one is not stored. */
  async locate(
    owner: Owner,
    ids: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    return byId(
      await this.#transport.json(
        post(this.#locate(owner), 'downloads', { ids }, signal),
        urlsAnswer,
      ),
    );
  }
}

function post(
  { path, generation }: ChunksLocation,
  operation: string,
  body: object,
  signal: AbortSignal,
) {
  return {
    method: 'POST',
    path: `${path}/chunks/${operation}`,
    json: { generation, ...body },
    signal,
    deadlineMs: DEADLINE_MS,
  } as const;
}

function byId({ chunks }: ChunkUrls): Map<string, string> {
  return new Map(chunks.map(({ id, url }) => [id, url]));
}
