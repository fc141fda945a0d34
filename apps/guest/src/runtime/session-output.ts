import type { AgentFrame, AgentSetup } from '@svc/contract';
import type { AgentTask, TaskOutcome } from '../agents/agent.ts';
import type { AgentLink } from '../link/index.ts';
import type { AgentLog } from './agent-log.ts';
import { logLine } from './frame-log.ts';

/** Longest `result` of a task, in characters. */
const MAX_RESULT = 1024 * 1024;

/** Sends a session's frames to the worker, and logs failures and the output of one-shot agents. */
export class SessionOutput {
  readonly #link: Pick<AgentLink, 'frame'>;
  readonly #log: AgentLog;
  readonly #mode: AgentSetup['mode'];

  constructor(link: Pick<AgentLink, 'frame'>, log: AgentLog, mode: AgentSetup['mode']) {
    this.#link = link;
    this.#log = log;
    this.#mode = mode;
  }

  /** Sends a frame of the agent. */
  emit(frame: AgentFrame): void {
    const line = logLine(frame, this.#mode);
    if (line !== undefined) this.#log.append(line);
    this.#link.frame(frame);
  }

  taskStarted({ id }: AgentTask): void {
    this.#link.frame({ type: 'task_started', ...(id === undefined ? {} : { id }) });
  }

  taskCompleted({ id }: AgentTask, { status, result }: TaskOutcome): void {
    const frame: AgentFrame = {
      type: 'task_completed',
      status,
      result: result.slice(0, MAX_RESULT),
    };
    this.#link.frame(id === undefined ? frame : { ...frame, id });
  }

  error(code: string, message: string, id?: string): void {
    const frame: AgentFrame = { type: 'error', code, message };
    this.#link.frame(id === undefined ? frame : { ...frame, id });
  }

  /** Reports `what` has failed to the clients; the details go to the log alone. */
  failed(what: string, error: unknown): void {
    this.logFailure(what, error);
    this.error('agent_failed', `${what}; its log says more.`);
  }

  logFailure(what: string, error: unknown): void {
    this.#log.append(`${what}: ${describe(error)}\n`);
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? '' : `\n${JSON.stringify(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}
