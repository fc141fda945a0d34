import { type AgentSecrets, uuidOf } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { PreparedAgent } from '../agents/agent-starter.ts';
import type { AgentKind, AssignedAgent, StartInput } from '../agents/agents.ts';
import { fetchForStart, restoreCredentials } from '../agents/credentials.ts';
import { prepareAgent } from '../agents/prepare-agent.ts';
import { setupOf } from '../agents/setup.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { JournalOwner } from '../sessions/journal/directory.ts';
import type { SessionRegistry } from '../sessions/registry.ts';
import { SessionFiles, type SessionFilesOptions } from '../sessions/session-files.ts';
import { buildOneShot, type OneShotDeps } from './build-one-shot.ts';
import type { OneShot } from './one-shot.ts';

export interface OneShotStarterOptions {
  readonly registry: SessionRegistry;
  readonly files: Omit<SessionFilesOptions, 'held'>;
  readonly agents: OneShotDeps;
}

/** Everything about an agent that is ready before its VM is. */
interface Prepared {
  readonly secrets: AgentSecrets;
  readonly files: SessionFiles;
}

/** Starts and adopts one-shot agents. */
export class OneShotStarter implements AgentKind {
  readonly #options: OneShotStarterOptions;

  constructor(options: OneShotStarterOptions) {
    this.#options = options;
  }

  prepare(
    sandbox: Sandbox,
    agent: AssignedAgent,
    input: StartInput,
    signal: AbortSignal,
  ): PreparedAgent {
    return prepareAgent(this.#prepare(sandbox, signal), {
      start: (prepared, vm, starting) => this.#start(sandbox, agent, input, prepared, vm, starting),
      discard: ({ files }) => files.remove(),
    });
  }

  async adopt(sandbox: Sandbox, agent: AssignedAgent, vm: Microvm): Promise<OneShot> {
    const { registry, agents } = this.#options;
    const opened = await SessionFiles.open(this.#filesOf(sandbox), ownerOf(sandbox));
    const oneShot = buildOneShot({ sandbox, vm, ...agent, files: opened }, agents);
    registry.add(oneShot);
    oneShot.reconnect();
    const restore = async (signal: AbortSignal) =>
      oneShot.useSecrets(await agents.api.agentSecrets(sandbox.id, signal));
    restoreCredentials(oneShot, restore, agents.onFault);
    return oneShot;
  }

  async #prepare(sandbox: Sandbox, signal: AbortSignal): Promise<Prepared> {
    const { agents } = this.#options;
    const secrets = await fetchForStart(() => agents.api.agentSecrets(sandbox.id, signal), signal);
    const files = this.#filesOf(sandbox);
    return { secrets, files: await SessionFiles.create(files, ownerOf(sandbox), undefined) };
  }

  #filesOf({ assignment }: Sandbox): SessionFilesOptions {
    const { files, agents } = this.#options;
    return { ...files, held: agents.links.of(assignment.tenant_id) };
  }

  /** Settles when the agent is ready. A failure leaves nothing behind. */
  async #start(
    sandbox: Sandbox,
    agent: AssignedAgent,
    input: StartInput,
    { secrets, files }: Prepared,
    vm: Microvm,
    signal: AbortSignal,
  ): Promise<OneShot> {
    const { registry, agents } = this.#options;
    const oneShot = buildOneShot({ sandbox, vm, ...agent, files }, agents);
    try {
      oneShot.useSecrets(secrets);
      const conversation = await oneShot.persisted?.fetch(signal);
      const { placed } = agent;
      const setup = setupOf({ placed, input, secrets, conversation, restoreFiles: false });
      await oneShot.start(setup, withDeadline(signal, agents.timeouts.configureMs));
      registry.add(oneShot);
      return oneShot;
    } catch (error) {
      await oneShot.dispose().catch((fault) => agents.onFault(fault, 'dispose of an agent'));
      throw error;
    }
  }
}

/** The journal of a one-shot agent is named like that of a session. No session has its id, so none is committed. */
function ownerOf({ id, assignment }: Sandbox): JournalOwner {
  return { session_id: uuidOf(id), generation: assignment.generation, vm_id: id };
}
