import { ChunkSecret, ChunkUrls, MissingChunks, type UploadChunksRequest } from '@svc/contract';
import { answerOf, type ControlPlaneTransport } from './control-plane-transport.ts';

const DEADLINE_MS = 15_000;

const secretAnswer = answerOf<ChunkSecret>(ChunkSecret);
const missingAnswer = answerOf<MissingChunks>(MissingChunks);
const urlsAnswer = answerOf<ChunkUrls>(ChunkUrls);

/** One start of a session. */
export interface ChunksOwner {
  readonly sessionId: string;
  readonly generation: number;
}

/**
 * The control plane's knowledge of stored chunks. Calls fail with a `ControlPlaneError` `stale_generation` when the
 * session has been started again since. Each has a time limit; none is retried here. At most 256 chunks a call.
 */
export class SessionChunksApi {
  readonly #transport: Pick<ControlPlaneTransport, 'json' | 'done'>;

  constructor(transport: Pick<ControlPlaneTransport, 'json' | 'done'>) {
    this.#transport = transport;
  }

  /** The secret of the session's chunks, 32 bytes. */
  async secret({ sessionId, generation }: ChunksOwner, signal: AbortSignal): Promise<Buffer> {
    const path = `/sessions/${encodeURIComponent(sessionId)}/chunk-secret?generation=${generation}`;
    const call = { method: 'GET', path, signal, deadlineMs: DEADLINE_MS } as const;
    const { secret } = await this.#transport.json(call, secretAnswer);
    return Buffer.from(secret, 'base64');
  }

  /** Which of these chunks have to be uploaded. The others stay stored for a while. */
  async missing(
    owner: ChunksOwner,
    ids: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const call = post(owner, 'missing', { ids }, signal);
    return (await this.#transport.json(call, missingAnswer)).ids;
  }

  /** Where to upload these chunks, by id. Leaves out those that are stored by now. */
  async announce(
    owner: ChunksOwner,
    chunks: UploadChunksRequest['chunks'],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    return byId(await this.#transport.json(post(owner, 'uploads', { chunks }, signal), urlsAnswer));
  }

  /** Has the control plane look for uploaded chunks. Fails with `file_not_found` when one is not there. */
  async confirm(owner: ChunksOwner, ids: readonly string[], signal: AbortSignal): Promise<void> {
    await this.#transport.done(post(owner, 'uploaded', { ids }, signal));
  }

  /** Where to download these chunks, by id. Fails with `file_not_found` when one is not stored. */
  async locate(
    owner: ChunksOwner,
    ids: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    return byId(await this.#transport.json(post(owner, 'downloads', { ids }, signal), urlsAnswer));
  }
}

function post(
  { sessionId, generation }: ChunksOwner,
  operation: string,
  body: object,
  signal: AbortSignal,
) {
  const path = `/sessions/${encodeURIComponent(sessionId)}/chunks/${operation}`;
  const json = { generation, ...body };
  return { method: 'POST', path, json, signal, deadlineMs: DEADLINE_MS } as const;
}

function byId({ chunks }: ChunkUrls): Map<string, string> {
  return new Map(chunks.map(({ id, url }) => [id, url]));
}
