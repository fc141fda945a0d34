import { chunkIdOf, deriveChunkKeys, sealChunk } from '@svc/chunks';
import type { ChunkUrls, WorkspaceChange, WorkspaceCommit, WorkspaceEntries } from '@svc/contract';
import { openStore, type Store } from '@svc/store';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, expect } from 'vitest';
import { askAsWorker } from './ask-as-worker.ts';
import { Harness } from './harness.ts';
import { file, newFlush } from './workspace-changes.ts';

const MIB = 1024 * 1024;
/** Bytes that the workspaces of an account may have. */
export const WORKSPACE_QUOTA = 3 * MIB;
const BYTES = { accept: 'application/octet-stream' };

type Account = Awaited<ReturnType<Harness['signUp']>>;

/** A control plane with one account and one worker, for tests of workspaces in sandboxes. */
export class WorkspaceLab implements AsyncDisposable {
  readonly harness: Harness;
  readonly account: Account;
  readonly worker: WorkerDouble;
  readonly #store: Store;
  #count = 0;

  constructor(harness: Harness, account: Account, worker: WorkerDouble, store: Store) {
    this.harness = harness;
    this.account = account;
    this.worker = worker;
    this.#store = store;
  }

  static async start(): Promise<WorkspaceLab> {
    const harness = await Harness.start({ SVC_LIMIT_WORKSPACE_BYTES: String(WORKSPACE_QUOTA) });
    const account = await harness.signUp();
    const store = await openStore({
      url: harness.postgres.url,
      placement: { unreachableMs: 30_000, sandboxesPerTenant: 1 },
    });
    const worker = await harness.addWorker('w1', (w) => {
      w.memoryMib = MIB;
    });
    return new WorkspaceLab(harness, account, worker, store);
  }

  /** The worker of one sandbox of a workspace. */
  mountOf(vmId: string, as = this.worker) {
    const { harness } = this;
    const route = `/sandboxes/${vmId}/workspace`;
    const ask = (method: string, path: string, body?: object) =>
      askAsWorker(as, harness.plane.url, method, route + path, body);
    const post = (path: string, body: object) => ask('POST', path, { generation: 1, ...body });
    const mount = {
      vmId,
      ask,
      post,
      stage: (flush: string, changes: WorkspaceChange[]) =>
        post(`/flushes/${flush}/changes`, { changes }),
      commit: (flush: string) => post(`/flushes/${flush}/commit`, {}),
      async flush(...changes: WorkspaceChange[]): Promise<WorkspaceCommit> {
        const flush = newFlush();
        const staged = await mount.stage(flush, changes);
        expect(staged.status, JSON.stringify(staged.body)).toBe(204);
        const committed = await mount.commit(flush);
        expect(committed.status, JSON.stringify(committed.body)).toBe(200);
        return committed.body as unknown as WorkspaceCommit;
      },
      /** Stores a chunk as a worker does, and returns its id. */
      async store(content: Buffer): Promise<string> {
        const { body } = await ask('GET', '/chunk-secret?generation=1');
        const keys = deriveChunkKeys(Buffer.from(String(body.secret), 'base64'));
        const id = chunkIdOf(content, keys);
        const sealed = await sealChunk(content, id, keys);
        const chunks = [{ id, stored_bytes: sealed.length }];
        const announced = await post('/chunks/uploads', { chunks });
        const [target] = (announced.body as unknown as ChunkUrls).chunks;
        if (target !== undefined) {
          const init = { method: 'PUT', body: new Uint8Array(sealed) };
          expect((await fetch(new URL(target.url, harness.plane.url), init)).status).toBe(200);
          expect((await post('/chunks/uploaded', { ids: [id] })).status).toBe(204);
        }
        return id;
      },
      async file(path: string | Buffer, content: Buffer): Promise<WorkspaceChange> {
        return file(path, [{ id: await mount.store(content), length: content.length }]);
      },
      async entries(query = ''): Promise<WorkspaceEntries> {
        const answer = await ask('GET', `/entries?generation=1${query}`);
        expect(answer.status, JSON.stringify(answer.body)).toBe(200);
        return answer.body as unknown as WorkspaceEntries;
      },
      /** The paths of all entries, with their versions. */
      async versions(): Promise<Record<string, number>> {
        const { entries } = await mount.entries();
        return Object.fromEntries(
          entries.map(({ path, version }) => [Buffer.from(path, 'base64url').toString(), version]),
        );
      },
      paths: async () => Object.keys(await mount.versions()),
    };
    return mount;
  }

  /** Makes a sandbox with a workspace. */
  async newMount(scope?: string, owner = this.account, as = this.worker) {
    const { harness } = this;
    this.#count += 1;
    const app = scope ?? `app-${this.#count}`;
    const vmId = await harness.create(owner.key, {
      workspace_enabled: true,
      app_id: app,
      capset_id: 'c',
    });
    await harness.sql.query('update sandboxes set worker_id = $2 where vm_id = $1', [vmId, as.id]);
    return { ...this.mountOf(vmId, as), app, ...this.#customerOf(app, owner) };
  }

  /** The customer's view of a workspace. */
  #customerOf(app: string, owner: Account) {
    const { harness } = this;
    const route = `/v1/workspaces/${app}/c`;
    const call = (method: string, path: string, headers: Record<string, string> = {}) =>
      harness.call(method, route + path, { key: owner.token, headers });
    return {
      call,
      files: async () => (await call('GET', '')).body.files as { path: string; size: number }[],
      usage: async () => (await call('GET', '/usage')).body,
      read: (path: string, headers: Record<string, string> = {}) =>
        call('GET', `/files/${path}`, { ...BYTES, ...headers }),
      async upload(path: string, content: string): Promise<void> {
        const { body } = await call('PUT', `/files/${path}`);
        expect((await fetch(String(body.url), { method: 'PUT', body: content })).status).toBe(200);
      },
    };
  }

  /** The numbers of chunks of a workspace. */
  async chunksOf(app: string) {
    const { rows } = await this.harness.sql.query<{ used: number; unused: number }>(
      `select (count(*) filter (where unused_since is null))::int as used,
         (count(*) filter (where unused_since is not null))::int as unused
       from workspace_chunks join workspaces using (workspace_id) where app_id = $1`,
      [app],
    );
    return rows[0];
  }
  /** As if all unused chunks had been so for long. */
  removeUnused(): Promise<number> {
    return this.#store.workspaceChunks.removeUnused(-1, 1_000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store.close();
    await this.harness[Symbol.asyncDispose]();
  }
}

/** A lab for the tests of the file that calls this. */
export function useWorkspaceLab(): () => WorkspaceLab {
  let lab: WorkspaceLab | undefined;
  beforeAll(async () => {
    lab = await WorkspaceLab.start();
  });
  afterAll(() => lab?.[Symbol.asyncDispose]());
  return () => {
    if (lab === undefined) throw new Error('the lab exists only while tests run');
    return lab;
  };
}
