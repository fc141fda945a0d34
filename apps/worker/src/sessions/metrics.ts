import { AGENTS, type Agent, TASK_STATUSES } from '@svc/contract';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { NewFrame } from './journal/format.ts';
import type { SessionRegistry } from './registry.ts';

const COMMIT_OUTCOMES = ['committed', 'failed', 'stale'] as const;
export type CommitOutcome = (typeof COMMIT_OUTCOMES)[number];

const COMMIT_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** What is counted of agents and their sessions; never by session or customer. */
export class SessionMetrics {
  readonly #frames: Counter;
  readonly #tasks: Counter;
  readonly #commits: Histogram;
  readonly #lines: Counter;

  constructor(registry: Registry, sessions: Pick<SessionRegistry, 'all'>) {
    const registers = [registry];
    new Gauge({
      name: 'svc_worker_sessions',
      help: 'Sessions on this worker, by agent; those of paused sandboxes count.',
      labelNames: ['agent'],
      registers,
      collect() {
        for (const agent of AGENTS) this.set({ agent }, 0);
        for (const { agent } of sessions.all()) this.inc({ agent });
      },
    });
    new Gauge({
      name: 'svc_worker_session_clients',
      help: 'Clients that are attached to sessions.',
      registers,
      collect() {
        this.set(sessions.all().reduce((sum, { clients }) => sum + clients, 0));
      },
    });
    this.#frames = new Counter({
      name: 'svc_worker_session_frames_total',
      help: 'Frames written to the journals of sessions, by type.',
      labelNames: ['type'],
      registers,
    });
    this.#tasks = new Counter({
      name: 'svc_worker_session_tasks_total',
      help: 'Tasks of sessions that ended, as their agents say.',
      labelNames: ['agent', 'status'],
      registers,
    });
    this.#commits = new Histogram({
      name: 'svc_worker_session_turn_commit_duration_seconds',
      help: 'Time until a turn that ended was the control plane’s, or was known not to become so.',
      labelNames: ['outcome'],
      buckets: COMMIT_BUCKETS,
      registers,
    });
    this.#lines = new Counter({
      name: 'svc_worker_agent_lines_lost_total',
      help: 'Agents given up because they could not be reached for too long.',
      registers,
    });
    // A series that begins with its first failure shows no rise.
    for (const agent of AGENTS) {
      for (const status of TASK_STATUSES) this.#tasks.inc({ agent, status }, 0);
    }
    for (const outcome of COMMIT_OUTCOMES) this.#commits.zero({ outcome });
  }

  frameKept(agent: Agent, frame: NewFrame['frame']): void {
    this.#frames.inc({ type: frame.type });
    if (frame.type === 'task_completed') this.#tasks.inc({ agent, status: frame.status });
  }

  /** Starts to time the commit of a turn; call the result when its outcome is known. */
  timeTurnCommit(): (outcome: CommitOutcome) => void {
    const end = this.#commits.startTimer();
    return (outcome) => void end({ outcome });
  }

  lineLost(): void {
    this.#lines.inc();
  }
}
