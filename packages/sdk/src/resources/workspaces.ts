import type {
  ListWorkspaceFilesResponse,
  ListWorkspacesResponse,
  PresignedUrl,
  Workspace,
  WorkspaceDeletedResponse,
  WorkspaceFile,
  WorkspaceFilesQuery,
  WorkspaceUsage,
} from '@svc/contract';
import { SvcError } from '../errors.ts';
import { downloadAll, downloadOf, type FileDownload } from '../transport/download.ts';
import type { CallOptions, RawAnswer, RequestBody, Transport } from '../transport/request.ts';

/** What identifies a workspace of the account. */
export interface WorkspaceId {
  readonly appId: string;
  readonly capsetId: string;
}

/** The content of a file to upload. A stream needs its size in bytes, and is sent only once. */
export type WorkspaceSource =
  | string
  | Uint8Array
  | { readonly stream: RequestBody; readonly size: number };

const TRANSFER_TIMEOUT_MS = 3_600_000;

/** Persistent files of the account. The calls need an account token. Paths are relative to the workspace. */
export class Workspaces {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The workspaces that have files. */
  async list(options?: CallOptions): Promise<Workspace[]> {
    const path = '/v1/workspaces';
    const answer = await this.#transport.json<ListWorkspacesResponse>({
      method: 'GET',
      path,
      options,
    });
    return answer.workspaces;
  }

  /** One page of the files of a workspace, in the order of their paths. */
  async filesPage(
    id: WorkspaceId,
    query: WorkspaceFilesQuery = {},
    options?: CallOptions,
  ): Promise<ListWorkspaceFilesResponse> {
    return this.#transport.json({ method: 'GET', path: pathOf(id), query, options });
  }

  /** The files of a workspace whose paths start with `prefix`. Fetches pages as the loop needs them. */
  async *files(
    id: WorkspaceId,
    prefix = '',
    options?: CallOptions,
  ): AsyncGenerator<WorkspaceFile, void, void> {
    let token: string | undefined;
    do {
      const query = {
        limit: 100,
        ...(prefix === '' ? {} : { prefix }),
        ...(token === undefined ? {} : { token }),
      };
      const page = await this.filesPage(id, query, options);
      yield* page.files;
      token = page.next_token;
    } while (token !== undefined);
  }

  /** The size of a workspace. */
  async usage(id: WorkspaceId, options?: CallOptions): Promise<WorkspaceUsage> {
    return this.#transport.json({ method: 'GET', path: `${pathOf(id)}/usage`, options });
  }

  /** A URL with which anyone can download a file until it expires. */
  async downloadUrl(id: WorkspaceId, file: string, options?: CallOptions): Promise<PresignedUrl> {
    return this.#transport.json({ method: 'GET', path: filePathOf(id, file), options });
  }

  /** A URL with which anyone can upload a file once until it expires; with `size`, of exactly as many bytes. */
  async uploadUrl(
    id: WorkspaceId,
    file: string,
    size?: number,
    options?: CallOptions,
  ): Promise<PresignedUrl> {
    const query = { size };
    return this.#transport.json({ method: 'PUT', path: filePathOf(id, file), query, options });
  }

  /** Uploads a file, completely or not at all. It can be read when the call returns. */
  async write(
    id: WorkspaceId,
    file: string,
    source: WorkspaceSource,
    options?: CallOptions,
  ): Promise<void> {
    const { body, size } = bodyOf(source);
    const { url } = await this.uploadUrl(id, file, size, options);
    await this.#transport.put(url, body, size, {
      timeoutMs: TRANSFER_TIMEOUT_MS,
      ...options,
    });
  }

  /** Reads a whole file into memory. */
  async read(id: WorkspaceId, file: string, options?: CallOptions): Promise<Uint8Array> {
    return downloadAll(await this.#open(id, file, options));
  }

  /** Reads a file as a stream, with backpressure. Cancel the stream to end it early. */
  async readStream(id: WorkspaceId, file: string, options?: CallOptions): Promise<FileDownload> {
    return downloadOf(await this.#open(id, file, options));
  }

  /** Deletes a file. */
  async delete(
    id: WorkspaceId,
    file: string,
    options?: CallOptions,
  ): Promise<WorkspaceDeletedResponse> {
    return this.#transport.json({ method: 'DELETE', path: filePathOf(id, file), options });
  }

  /** Deletes every file of a workspace. */
  async deleteAll(id: WorkspaceId, options?: CallOptions): Promise<WorkspaceDeletedResponse> {
    return this.#transport.json({ method: 'DELETE', path: pathOf(id), options });
  }

  #open(id: WorkspaceId, file: string, options: CallOptions | undefined): Promise<RawAnswer> {
    return this.#transport.raw({
      method: 'GET',
      path: filePathOf(id, file),
      headers: { accept: 'application/octet-stream' },
      defaultTimeoutMs: TRANSFER_TIMEOUT_MS,
      options,
    });
  }
}

function bodyOf(source: WorkspaceSource): { body: RequestBody; size: number } {
  if (typeof source === 'string') return bodyOf(new TextEncoder().encode(source));
  if (source instanceof Uint8Array) return { body: source, size: source.byteLength };
  return { body: source.stream, size: source.size };
}

function pathOf({ appId, capsetId }: WorkspaceId): string {
  return `/v1/workspaces/${encodeURIComponent(appId)}/${encodeURIComponent(capsetId)}`;
}

/** Encodes slashes too, so that nothing on the way takes a name for a directory. */
function filePathOf(id: WorkspaceId, file: string): string {
  // A URL with these would name the workspace itself, even encoded.
  if (['', '.', '..'].includes(file)) {
    const detail = 'Send a relative path without empty, `.` or `..` components.';
    throw new SvcError({ code: 'workspace_path_invalid', detail });
  }
  return `${pathOf(id)}/files/${encodeURIComponent(file)}`;
}
