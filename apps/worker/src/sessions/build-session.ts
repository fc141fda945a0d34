import type { Slots } from '@svc/service-kit/concurrency';
import { type ChunkStorage, ChunkStore } from '../chunks/chunk-store.ts';
import type { SessionApi } from '../control-plane/session-api.ts';
import { faultsOf } from '../faults.ts';
import { type AgentDeps, type AgentStart, buildParts } from './build-parts.ts';
import type { SessionMetrics } from './metrics.ts';
import { type PlacedSession, Session } from './session.ts';
import { Committer } from './turns/committer.ts';
import { TurnCommits } from './turns/turn-commits.ts';

/** The parts of the worker that all its sessions share. */
export interface SessionDeps extends AgentDeps {
  readonly api: SessionApi;
  readonly chunks: ChunkStorage;
  /** For turns that need much memory while they are committed. */
  readonly largeCommits: Slots;
  readonly metrics: SessionMetrics;
}

/** One start of a session. */
export type SessionStart = Omit<AgentStart, 'id' | 'generation'> & {
  readonly placed: PlacedSession;
};

/** Builds a session, whose turns are committed to the control plane. Nothing runs yet. */
export function buildSession(start: SessionStart, deps: SessionDeps): Session {
  const { sandbox, vm, placed, files } = start;
  const { api, metrics, logger, timeouts } = deps;
  const onFault = faultsOf(sandbox.id, deps.onFault);
  const { chat_session_id: sessionId, generation } = placed.session;
  const owner = { sessionId, generation };
  const tenantId = sandbox.assignment.tenant_id;
  const store = new ChunkStore({ ...deps.chunks, owner, tenantId });
  const committer = new Committer({
    api,
    journal: files.journal,
    ...owner,
    vmId: sandbox.id,
    commitMs: timeouts.commitMs,
    runLarge: (commit, signal) => deps.largeCommits.run(commit, signal, tenantId),
    spend: (bytes) => deps.chunks.rates.spend(tenantId, bytes),
  });
  const parts = buildParts({ ...start, id: sessionId, generation }, deps, {
    turns: ({ closed }) =>
      new TurnCommits({
        committer,
        vm,
        store,
        filesDue: files.filesDue,
        sandbox,
        metrics,
        logger,
        onFault,
        closed,
      }),
    lastN: files.journal.lastN,
    events: {
      // The agent of a session waits for further tasks; a guest that says otherwise lies.
      exited: async () => undefined,
      lost: () => sandbox.end('agent_exited'),
    },
  });
  return new Session(parts, api);
}
