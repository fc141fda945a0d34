import {
  type CreateSandboxRequest,
  type CreateSandboxResponse,
  makeId,
  type WorkerSandbox,
} from '@svc/contract';
import type { IdempotencyHold, SandboxRow, Store } from '@svc/store';
import { uuidv7 } from 'uuidv7';
import { oneShotAgent } from '../agents/one-shot.ts';
import type { Caller } from '../auth/caller.ts';
import { IdempotentCreate } from './idempotent-create.ts';
import { type CreateRules, checkCreateRules } from './rules.ts';
import { settleCreation } from './settle.ts';
import type { SandboxStarter } from './start.ts';

/** Options of a creation. */
export interface CreateOptions {
  readonly idempotencyKey: string | undefined;
  /** Aborts when the caller leaves. */
  readonly signal: AbortSignal;
}

/** Creates sandboxes. */
export class SandboxCreator {
  readonly #store: Store;
  readonly #starter: SandboxStarter;
  readonly #rules: CreateRules;
  readonly #idempotent: IdempotentCreate<CreateSandboxResponse>;

  constructor(store: Store, starter: SandboxStarter, rules: CreateRules) {
    this.#store = store;
    this.#starter = starter;
    this.#rules = rules;
    this.#idempotent = new IdempotentCreate(store.idempotency, 'sandboxes.create');
  }

  /**
   * Returns once the sandbox runs. When the caller leaves, the creation is rolled back, unless the request has
   * an idempotency key: the caller may return for the response, so the creation continues.
   */
  async create(
    { tenantId }: Caller,
    request: CreateSandboxRequest,
    { idempotencyKey, signal }: CreateOptions,
  ): Promise<CreateSandboxResponse> {
    const vmId = makeId('sandbox', uuidv7());
    const create = async (id: string, until: AbortSignal, hold?: IdempotencyHold) => {
      await checkCreateRules(request, this.#rules);
      const agent = oneShotAgent(tenantId, request, this.#rules.models);
      return fromWorker(
        await this.#starter.start({ vmId: id, tenantId, request, agent, hold }, until),
      );
    };
    if (idempotencyKey === undefined) return create(vmId, signal);
    return this.#idempotent.run({
      tenantId,
      key: idempotencyKey,
      body: request,
      subject: vmId,
      signal,
      create: (id, hold) => create(id, new AbortController().signal, hold),
      settle: async (id) => fromLedger(await settleCreation(this.#store.sandboxes, id)),
    });
  }
}

function fromWorker(sandbox: WorkerSandbox): CreateSandboxResponse {
  return {
    vm_id: sandbox.vm_id,
    state: sandbox.state,
    host_port: sandbox.host_port,
    endpoint: sandbox.endpoint,
  };
}

/** The answer of a creation, whatever has happened to the sandbox since. */
function fromLedger(row: SandboxRow | undefined): CreateSandboxResponse | undefined {
  if (row === undefined) return undefined;
  if (row.host_port === null) throw new Error(`Sandbox ${row.vm_id} has started without a port.`);
  return {
    vm_id: row.vm_id,
    state: 'running',
    host_port: row.host_port,
    ...(row.endpoint === null ? {} : { endpoint: row.endpoint }),
  };
}
