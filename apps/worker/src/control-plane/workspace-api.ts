import {
  type WorkspaceChange,
  WorkspaceCommit,
  WorkspaceEntries,
  WorkspaceObjects,
} from '@svc/contract';
import { ChunksApi } from './chunks-api.ts';
import { answerOf, type ControlPlaneTransport } from './control-plane-transport.ts';

const DEADLINE_MS = 30_000;

const entriesAnswer = answerOf<WorkspaceEntries>(WorkspaceEntries);
const objectsAnswer = answerOf<WorkspaceObjects>(WorkspaceObjects);
const commitAnswer = answerOf<WorkspaceCommit>(WorkspaceCommit);

/** The workspace of one placement of a sandbox. */
export interface WorkspaceOwner {
  readonly vmId: string;
  readonly generation: number;
}

/** A workspace in the control plane, and its chunks. Each call has a time limit; none is retried here. */
export class WorkspaceApi extends ChunksApi<WorkspaceOwner> {
  readonly #transport: Pick<ControlPlaneTransport, 'json' | 'done'>;

  constructor(transport: Pick<ControlPlaneTransport, 'json' | 'done'>) {
    super(transport, (owner) => ({ path: pathOf(owner), generation: owner.generation }));
    this.#transport = transport;
  }

  /** A page of entries, in the order of their paths. `after`: `next` of the page before. */
  entries(
    owner: WorkspaceOwner,
    after: string | undefined,
    signal: AbortSignal,
  ): Promise<WorkspaceEntries> {
    const query = after === undefined ? '' : `&after=${after}`;
    const path = `${pathOf(owner)}/entries?generation=${owner.generation}${query}`;
    const call = { method: 'GET', path, signal, deadlineMs: DEADLINE_MS } as const;
    return this.#transport.json(call, entriesAnswer);
  }

  /** Where the content of plain objects is, for at most 256 paths. */
  async objects(
    owner: WorkspaceOwner,
    paths: readonly string[],
    signal: AbortSignal,
  ): Promise<WorkspaceObjects['objects']> {
    const call = post(owner, 'objects/downloads', { paths }, signal);
    return (await this.#transport.json(call, objectsAnswer)).objects;
  }

  /** Stages a page of changes. */
  stage(
    owner: WorkspaceOwner,
    flushId: string,
    changes: readonly WorkspaceChange[],
    signal: AbortSignal,
  ): Promise<void> {
    return this.#transport.done(post(owner, `flushes/${flushId}/changes`, { changes }, signal));
  }

  /** Applies the staged changes. */
  commit(owner: WorkspaceOwner, flushId: string, signal: AbortSignal): Promise<WorkspaceCommit> {
    return this.#transport.json(post(owner, `flushes/${flushId}/commit`, {}, signal), commitAnswer);
  }
}

function pathOf({ vmId }: WorkspaceOwner): string {
  return `/sandboxes/${encodeURIComponent(vmId)}/workspace`;
}

function post(owner: WorkspaceOwner, operation: string, body: object, signal: AbortSignal) {
  return {
    method: 'POST',
    path: `${pathOf(owner)}/${operation}`,
    json: { generation: owner.generation, ...body },
    signal,
    deadlineMs: DEADLINE_MS,
  } as const;
}
