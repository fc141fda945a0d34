import type { PlacedAgent, PlaceSandboxRequest } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import type { SandboxAgent } from '../sandbox/agent.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { AgentStarter, PreparedAgent } from './agent-starter.ts';

/** An agent as the control plane placed it, and the token that authenticates this worker to its runtime. */
export interface AssignedAgent {
  readonly placed: PlacedAgent;
  readonly token: string;
}

/** The values of a request that only the start of an agent needs; the worker does not keep them. */
export type StartInput = Pick<PlaceSandboxRequest, 'env_vars' | 'agent_input'>;

/** One kind of agent: a one-shot agent, or the agent of a session. */
export interface AgentKind {
  /** Like {@link AgentStarter.prepare}. */
  prepare(
    sandbox: Sandbox,
    agent: AssignedAgent,
    input: StartInput,
    signal: AbortSignal,
  ): PreparedAgent;
  /** Reconnects to an agent that an earlier worker started, and restores its credentials in the background. */
  adopt(sandbox: Sandbox, agent: AssignedAgent, vm: Microvm): Promise<SandboxAgent>;
}

/** Starts and adopts the agents of sandboxes, each as its kind requires. */
export class Agents implements AgentStarter {
  readonly #oneShot: AgentKind;
  readonly #session: AgentKind;

  constructor(kinds: { readonly oneShot: AgentKind; readonly session: AgentKind }) {
    this.#oneShot = kinds.oneShot;
    this.#session = kinds.session;
  }

  prepare(sandbox: Sandbox, request: PlaceSandboxRequest, signal: AbortSignal): PreparedAgent {
    const { agent: placed } = request.placement;
    const token = sandbox.assignment.agent_token;
    if (placed === undefined || token === undefined) {
      throw new Error('the request names no agent');
    }
    return this.#kindOf(placed).prepare(sandbox, { placed, token }, request, signal);
  }

  /** Undefined for a sandbox without an agent. */
  async adopt(sandbox: Sandbox, vm: Microvm): Promise<SandboxAgent | undefined> {
    const { placement, agent_token: token } = sandbox.assignment;
    const placed = placement.agent;
    if (placed === undefined || token === undefined) return undefined;
    return this.#kindOf(placed).adopt(sandbox, { placed, token }, vm);
  }

  #kindOf({ session }: PlacedAgent): AgentKind {
    return session === undefined ? this.#oneShot : this.#session;
  }
}
