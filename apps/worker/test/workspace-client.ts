import type { MicrovmTree } from '@svc/microvm';
import { type ComponentIdentity, createTokenMinter } from '@svc/service-kit';
import { Slots } from '@svc/service-kit/concurrency';
import { saveRates } from '../src/chunks/save-rates.ts';
import { ControlPlaneTransport } from '../src/control-plane/control-plane-transport.ts';
import { ObjectTransfer } from '../src/control-plane/object-transfer.ts';
import { WorkspaceApi } from '../src/control-plane/workspace-api.ts';
import type { WorkspaceDeps } from '../src/workspace/deps.ts';
import { SandboxWorkspace } from '../src/workspace/sandbox-workspace.ts';

export type { SandboxWorkspace } from '../src/workspace/sandbox-workspace.ts';

/** The steps of a worker that change what is stored. */
export type WorkspaceStep = 'missing' | 'announce' | 'put' | 'confirm' | 'stage' | 'commit';

export interface WorkspaceClientOptions {
  /** Of the control plane. */
  readonly url: string;
  readonly identity: ComponentIdentity;
}

/** The part of a worker that mounts workspaces, at a real control plane and its object store. */
export class WorkspaceClient {
  readonly api: WorkspaceApi;
  readonly transfer: ObjectTransfer;
  /** Called before each step. Throws to break it. */
  before: (step: WorkspaceStep) => void | Promise<void> = () => undefined;
  /** Called after each step, before its caller learns of it. Throws to lose its answer. */
  after: (step: WorkspaceStep) => void | Promise<void> = () => undefined;
  readonly #transport: ControlPlaneTransport;
  readonly #deps: WorkspaceDeps;

  constructor({ url, identity }: WorkspaceClientOptions) {
    const mint = createTokenMinter(identity.key, identity.id);
    this.#transport = new ControlPlaneTransport({ url, ca: undefined, mint });
    this.transfer = new ObjectTransfer({ url, ca: undefined });
    this.api = new WorkspaceApi(this.#transport);
    const { api, transfer } = this;
    const step = async <T>(name: WorkspaceStep, call: () => Promise<T>): Promise<T> => {
      await this.before(name);
      const result = await call();
      await this.after(name);
      return result;
    };
    this.#deps = {
      slots: { loads: new Slots(2), flushes: new Slots(2) },
      objects: transfer,
      api: {
        entries: (...args) => api.entries(...args),
        objects: (...args) => api.objects(...args),
        stage: (...args) => step('stage', () => api.stage(...args)),
        commit: (...args) => step('commit', () => api.commit(...args)),
      },
      chunks: {
        saves: new Slots(2),
        rates: saveRates(Number.MAX_SAFE_INTEGER),
        transfer: {
          get: (...args) => transfer.get(...args),
          put: (...args) => step('put', () => transfer.put(...args)),
        },
        api: {
          secret: (...args) => api.secret(...args),
          locate: (...args) => api.locate(...args),
          missing: (...args) => step('missing', () => api.missing(...args)),
          announce: (...args) => step('announce', () => api.announce(...args)),
          confirm: (...args) => step('confirm', () => api.confirm(...args)),
        },
      },
    };
  }

  /** The workspace of a sandbox with this tree, as the worker mounts it. */
  mount(vmId: string, tree: MicrovmTree): SandboxWorkspace {
    return new SandboxWorkspace({
      owner: { vmId, generation: 1 },
      tenantId: 't',
      deps: this.#deps,
      tree,
      isRunning: () => true,
      onFault: () => undefined,
    });
  }

  async close(): Promise<void> {
    await this.transfer.close();
    await this.#transport.close();
  }
}
