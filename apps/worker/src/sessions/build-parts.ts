import type { PlacedAgent } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import type { KeyedBudget, KeyedTokenBuckets } from '@svc/service-kit/concurrency';
import { AgentCredentials } from '../agents/credentials.ts';
import { AgentLink, type AgentLinkHandler } from '../agents/link/agent-link.ts';
import { LogCopy, type LogCopyOptions } from '../agents/logs/log-copy.ts';
import type { AgentTimeouts } from '../agents/timeouts.ts';
import type { Clock } from '../clock.ts';
import { faultsOf, type OnFault } from '../faults.ts';
import type { LlmAccounts } from '../gateway/index.ts';
import type { WorkerLogger } from '../logger.ts';
import type { Metering } from '../metering/metering.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { AgentSessionParts } from './agent-session.ts';
import { AttachedClients } from './clients/attached-clients.ts';
import type { DesktopRates } from './clients/desktop-rates.ts';
import type { SessionMetrics } from './metrics.ts';
import type { SessionFiles } from './session-files.ts';
import { TaskTrace } from './turns/task-trace.ts';
import { type AgentEvents, TurnPipeline } from './turns/turn-pipeline.ts';
import type { TurnStore } from './turns/turn-store.ts';
import { DesktopView } from './view/desktop-view.ts';

/** The parts of the worker that all its agents share. */
export interface AgentDeps {
  readonly accounts: LlmAccounts;
  readonly metrics: Pick<SessionMetrics, 'frameStored' | 'linkLost' | 'viewShown'>;
  readonly logs: LogCopyOptions['logs'];
  readonly delivery: LogCopyOptions['delivery'];
  readonly metering: Pick<Metering, 'wake'>;
  readonly desktops: DesktopRates;
  /** The bytes of the live views of each tenant. */
  readonly views: KeyedTokenBuckets;
  /** The bytes that the clients of each tenant have not read. */
  readonly unsent: KeyedBudget;
  /** The bytes that the links to the guests of each tenant hold. */
  readonly links: KeyedBudget;
  readonly clock: Clock;
  readonly logger: WorkerLogger;
  readonly timeouts: AgentTimeouts;
  readonly onFault: OnFault;
}

/** One start of an agent. */
export interface AgentStart {
  readonly id: string;
  readonly generation: number;
  readonly sandbox: Sandbox;
  readonly vm: Microvm;
  readonly placed: PlacedAgent;
  readonly token: string;
  readonly files: SessionFiles;
}

/** What distinguishes one use of an agent from the other. */
export interface AgentUse {
  /** Makes the store for its turns. `closed` aborts when the agent is released. */
  readonly turns: (own: { closed: AbortSignal; credentials: AgentCredentials }) => TurnStore;
  readonly events: AgentEvents;
  /** The number of the guest's last message that need not be sent again. */
  readonly lastN: number;
  /** Makes the receiver of the guest's messages. Default: the pipeline itself. */
  readonly handler?: (pipeline: AgentLinkHandler) => AgentLinkHandler;
}

/** Builds the parts of an agent with clients, in the order in which they depend on each other. Nothing runs yet. */
export function buildParts(start: AgentStart, deps: AgentDeps, use: AgentUse): AgentSessionParts {
  const { sandbox, vm, placed, token, files } = start;
  const { accounts, metering, metrics, clock, logger, timeouts } = deps;
  const onFault = faultsOf(sandbox.id, deps.onFault);
  const { journal, outbox } = files;
  const closing = new AbortController();
  const closed = closing.signal;
  const tenantId = sandbox.assignment.tenant_id;
  const link = new AgentLink({
    vm,
    token,
    held: deps.links.of(tenantId),
    lastN: use.lastN,
    onCaptured: (message) => view.captured(message),
    outbox,
    timeouts,
    metrics,
    logger,
  });
  const { slowConsumerMs, finishMs, restartCommitMs } = timeouts;
  const mayUseDesktop = (tool: string) => deps.desktops.take(tenantId, tool);
  const view: DesktopView = new DesktopView({
    guest: link,
    tenantId,
    tenants: deps.views,
    metrics,
  });
  const clients = new AttachedClients({
    journal,
    sandbox,
    clock,
    slowConsumerMs,
    unsent: deps.unsent.of(tenantId),
    view,
    mayUseDesktop,
    onFault,
  });
  const trace = new TaskTrace({
    'svc.session_id': placed.session?.chat_session_id,
    'svc.sandbox_id': sandbox.id,
    'svc.tenant_id': tenantId,
    'svc.agent': placed.kind,
  });
  const credentials = new AgentCredentials({
    accounts,
    address: vm.host,
    vmId: sandbox.id,
    tenantId,
    vendor: placed.vendor,
    origin: () => trace.origin,
    onUsage: (usage) => {
      sandbox.usage.addTokens(usage);
      metering.wake();
      pipeline.noteUsage(usage);
    },
  });
  const turns = use.turns({ closed, credentials });
  const pipeline: TurnPipeline = new TurnPipeline({
    placed,
    events: use.events,
    vm,
    sandbox,
    link,
    journal,
    clients,
    turns,
    timeouts,
    metrics,
    mayUseDesktop,
    trace,
    onFault,
    closed,
  });
  return {
    id: start.id,
    generation: start.generation,
    sandbox,
    vm,
    placed,
    files,
    link,
    clients,
    handler: use.handler?.(pipeline) ?? pipeline,
    pipeline,
    turns,
    credentials,
    log: new LogCopy({ ...deps, vm, sandbox }),
    finishMs,
    restartCommitMs,
    closing,
  };
}
