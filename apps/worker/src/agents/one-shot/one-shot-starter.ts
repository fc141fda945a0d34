import type { Microvm } from '@svc/microvm';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { Clock } from '../../clock.ts';
import type { SessionApi } from '../../control-plane/session-api.ts';
import type { LlmAccounts } from '../../gateway/index.ts';
import type { WorkerLogger } from '../../logger.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { PreparedAgent } from '../agent-starter.ts';
import type { AgentKind, AssignedAgent, StartInput } from '../agents.ts';
import { AgentCredentials, fetchForStart, restoreCredentials } from '../credentials.ts';
import { AgentLink, type AgentLinkMetrics } from '../link/agent-link.ts';
import type { AgentLogs } from '../logs/agent-logs.ts';
import { setupOf } from '../setup.ts';
import type { AgentTimeouts } from '../timeouts.ts';
import { OneShot } from './one-shot.ts';
import { PersistedState, type PersistedStateOptions } from './persisted-state.ts';

export interface OneShotStarterOptions {
  readonly api: Pick<SessionApi, 'agentSecrets'>;
  readonly accounts: LlmAccounts;
  readonly egress: PersistedStateOptions['egress'];
  readonly metrics: AgentLinkMetrics;
  readonly logs: AgentLogs;
  readonly clock: Clock;
  readonly logger: WorkerLogger;
  readonly timeouts: AgentTimeouts;
  readonly onFault: (error: unknown, what: string) => void;
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
    const { api, timeouts } = this.#options;
    const fetching = fetchForStart(() => api.agentSecrets(sandbox.id, signal), signal);
    // The start reports a failure; a create that fails before it does not need to.
    fetching.catch(() => undefined);
    return {
      start: async (vm, starting) => {
        const secrets = await fetching;
        const oneShot = this.#build(sandbox, agent, vm);
        try {
          oneShot.credentials.use(secrets);
          const conversation = await oneShot.persisted?.fetch(starting);
          const { placed } = agent;
          const setup = setupOf({ placed, input, secrets, conversation, restoreFiles: false });
          await oneShot.start(setup, withDeadline(starting, timeouts.configureMs));
          return oneShot;
        } catch (error) {
          await oneShot.dispose();
          throw error;
        }
      },
      abandon: async () => undefined,
    };
  }

  async adopt(sandbox: Sandbox, agent: AssignedAgent, vm: Microvm): Promise<OneShot> {
    const { api, onFault } = this.#options;
    const oneShot = this.#build(sandbox, agent, vm);
    oneShot.reconnect();
    const restore = async (signal: AbortSignal) =>
      oneShot.credentials.use(await api.agentSecrets(sandbox.id, signal));
    restoreCredentials(sandbox, restore, onFault);
    return oneShot;
  }

  #build(sandbox: Sandbox, { placed, token }: AssignedAgent, vm: Microvm): OneShot {
    const { accounts, egress, metrics, logs, clock, logger, timeouts, onFault } = this.#options;
    const credentials = new AgentCredentials({
      accounts,
      address: vm.host,
      vmId: sandbox.id,
      vendor: placed.vendor,
      // The gateway counts it; a one-shot agent has no clients to show it to.
      onUsage: () => undefined,
    });
    const { persistence_url: url } = placed;
    const persisted =
      url === undefined
        ? undefined
        : new PersistedState({
            egress,
            url,
            credentials,
            sessionId: placed.session?.chat_session_id ?? placed.resume_id,
            vmId: sandbox.id,
            agent: placed.kind,
            clock,
            onFault,
          });
    const link = new AgentLink({
      vm,
      token,
      lastN: 0,
      outbox: undefined,
      timeouts,
      metrics,
      logger,
    });
    return new OneShot({
      sandbox,
      vm,
      link,
      credentials,
      persisted,
      logs,
      logger,
      timeouts,
      onFault,
    });
  }
}
