import { type SandboxAccess, ServiceError } from '@svc/contract';
import type { SandboxRow, Store } from '@svc/store';
import type { Caller } from '../auth/caller.ts';
import { type AccessFacts, type SessionAccessIssuer, sandboxFacts } from '../sessions/access.ts';
import { findSandbox } from './find.ts';
import { USABLE } from './usable.ts';

/** Gives callers access to the frames of the agents in their sandboxes. */
export class AgentConnector {
  readonly #store: Pick<Store, 'sandboxes' | 'sessions'>;
  readonly #access: SessionAccessIssuer;

  constructor(store: Pick<Store, 'sandboxes' | 'sessions'>, access: SessionAccessIssuer) {
    this.#store = store;
    this.#access = access;
  }

  /**
   * The address and token of the agent's WebSocket; for the sandbox of a session, those of the session.
   * @throws ServiceError `sandbox_not_found`, `sandbox_not_running`, `sandbox_has_no_agent`, `agent_ended`
   */
  async connect(caller: Caller, vmId: string): Promise<SandboxAccess> {
    const row = await findSandbox(this.#store, caller, vmId);
    if (!USABLE.includes(row.state)) throw new ServiceError('sandbox_not_running');
    if (row.agent === null) throw new ServiceError('sandbox_has_no_agent');
    if (row.agent_exit_code !== null) throw new ServiceError('agent_ended');
    const { connect_url, jwt, expires_at } = await this.#access.grant(await this.#factsOf(row));
    return { connect_url, jwt, expires_at };
  }

  async #factsOf(row: SandboxRow): Promise<AccessFacts> {
    if (row.session_id === null) return sandboxFacts(row);
    const session = await this.#store.sessions.find(row.session_id);
    if (session?.vm_id !== row.vm_id) throw new ServiceError('sandbox_not_running');
    return session;
  }
}
