import type { Microvm } from '@svc/microvm';
import { AgentCredentials } from '../agents/credentials.ts';
import { AgentLink } from '../agents/link/agent-link.ts';
import type { AgentLogs } from '../agents/logs/agent-logs.ts';
import type { AgentTimeouts } from '../agents/timeouts.ts';
import type { Clock } from '../clock.ts';
import type { SessionApi } from '../control-plane/session-api.ts';
import type { LlmAccounts } from '../gateway/index.ts';
import type { WorkerLogger } from '../logger.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { AttachedClients } from './clients/attached-clients.ts';
import type { SessionMetrics } from './metrics.ts';
import { type PlacedSession, Session } from './session.ts';
import type { SessionFiles } from './session-files.ts';
import { Committer } from './turns/committer.ts';
import { TurnCommits } from './turns/turn-commits.ts';
import { TurnPipeline } from './turns/turn-pipeline.ts';

/** The parts of the worker that all its sessions share. */
export interface SessionDeps {
  readonly api: SessionApi;
  readonly accounts: LlmAccounts;
  readonly metrics: SessionMetrics;
  readonly logs: AgentLogs;
  readonly clock: Clock;
  readonly logger: WorkerLogger;
  readonly timeouts: AgentTimeouts;
  readonly onFault: (error: unknown, what: string) => void;
}

/** One start of a session. */
export interface SessionStart {
  readonly sandbox: Sandbox;
  readonly vm: Microvm;
  readonly placed: PlacedSession;
  readonly token: string;
  readonly files: SessionFiles;
}

/** Builds a session from its parts, in the order in which they depend on each other. Nothing runs yet. */
export function buildSession(start: SessionStart, deps: SessionDeps): Session {
  const { sandbox, vm, placed, token, files } = start;
  const { api, accounts, metrics, logs, clock, logger, timeouts, onFault } = deps;
  const { chat_session_id: sessionId, generation } = placed.session;
  const { journal, outbox } = files;
  const owner = { sessionId, generation };
  const closing = new AbortController();
  const closed = closing.signal;

  const link = new AgentLink({
    vm,
    token,
    lastN: journal.lastN,
    outbox,
    timeouts,
    metrics,
    logger,
  });
  const { slowConsumerMs, commitMs } = timeouts;
  const clients = new AttachedClients({ journal, sandbox, clock, slowConsumerMs, onFault });
  const committer = new Committer({ api, journal, ...owner, vmId: sandbox.id, commitMs });
  const commits = new TurnCommits({
    committer,
    vm,
    api,
    owner,
    sandbox,
    metrics,
    logger,
    onFault,
    closed,
  });
  const pipeline = new TurnPipeline({
    agent: placed.kind,
    wireVersion: placed.wire_version,
    vm,
    sandbox,
    link,
    journal,
    clients,
    commits,
    timeouts,
    metrics,
    onFault,
    closed,
  });
  const credentials = new AgentCredentials({
    accounts,
    address: vm.host,
    vmId: sandbox.id,
    vendor: placed.vendor,
    onUsage: (usage) => pipeline.noteUsage(usage),
  });
  return new Session({
    sandbox,
    vm,
    placed,
    files,
    link,
    clients,
    pipeline,
    commits,
    credentials,
    api,
    logs,
    logger,
    finishMs: timeouts.finishMs,
    closing,
  });
}
