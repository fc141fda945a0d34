import { AGENTS, type Agent, TASK_STATUSES } from '@svc/contract';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { NewFrame } from './journal/format.ts';

const COMMIT_OUTCOMES = ['committed', 'failed', 'storage_full', 'stale'] as const;
export type CommitOutcome = (typeof COMMIT_OUTCOMES)[number];

const COMMIT_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** A session as far as it is counted. */
interface CountedSession {
  readonly agent: Agent;
  /** Whether it is a session, not the one-shot agent of a sandbox. */
  readonly isSession: boolean;
  readonly clients: number;
}

/** The metrics of agents and their sessions. No label names a session or a customer. */
export class SessionMetrics {
  readonly #frames: Counter;
  readonly #tasks: Counter;
  readonly #viewBytes: Counter;
  readonly #commits: Histogram;
  readonly #lostLinks: Counter;

  constructor(registry: Registry, sessions: { all(): readonly CountedSession[] }) {
    const registers = [registry];
    new Gauge({
      name: 'svc_worker_sessions',
      help: 'Sessions on this worker by agent, including those in paused sandboxes.',
      labelNames: ['agent'],
      registers,
      collect() {
        for (const agent of AGENTS) this.set({ agent }, 0);
        for (const { agent, isSession } of sessions.all()) if (isSession) this.inc({ agent });
      },
    });
    new Gauge({
      name: 'svc_worker_session_clients',
      help: 'Clients attached to sessions and one-shot agents.',
      registers,
      collect() {
        this.set(sessions.all().reduce((sum, { clients }) => sum + clients, 0));
      },
    });
    this.#frames = new Counter({
      name: 'svc_worker_session_frames_total',
      help: 'Frames of sessions and one-shot agents, by type.',
      labelNames: ['type'],
      registers,
    });
    this.#tasks = new Counter({
      name: 'svc_worker_session_tasks_total',
      help: 'Ended tasks of sessions and one-shot agents, by the status that the agent reported.',
      labelNames: ['agent', 'status'],
      registers,
    });
    this.#viewBytes = new Counter({
      name: 'svc_worker_view_bytes_total',
      help: 'Bytes of live views of desktops that were sent to clients.',
      registers,
    });
    this.#commits = new Histogram({
      name: 'svc_worker_session_turn_commit_duration_seconds',
      help: 'Time from the end of a turn until its commit succeeded or was abandoned.',
      labelNames: ['outcome'],
      buckets: COMMIT_BUCKETS,
      registers,
    });
    this.#lostLinks = new Counter({
      name: 'svc_worker_agent_lines_lost_total',
      help: 'Agents abandoned because they were unreachable for too long.',
      registers,
    });
    // A series must exist before its first increment, or a rate does not show it.
    for (const agent of AGENTS) {
      for (const status of TASK_STATUSES) this.#tasks.inc({ agent, status }, 0);
    }
    for (const outcome of COMMIT_OUTCOMES) this.#commits.zero({ outcome });
  }

  frameStored(agent: Agent, frame: NewFrame['frame']): void {
    this.#frames.inc({ type: frame.type });
    if (frame.type === 'task_completed') this.#tasks.inc({ agent, status: frame.status });
  }

  viewShown(bytes: number): void {
    this.#viewBytes.inc(bytes);
  }

  /** Starts to time the commit of a turn; the returned function records its outcome. */
  timeTurnCommit(): (outcome: CommitOutcome) => void {
    const end = this.#commits.startTimer();
    return (outcome) => void end({ outcome });
  }

  linkLost(): void {
    this.#lostLinks.inc();
  }
}
