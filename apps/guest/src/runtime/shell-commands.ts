import type { AgentFrame, ClientFrame } from '@svc/contract';
import { type ProcessContext, runShell } from '../agents/processes/index.ts';

/** Bound of concurrent commands: each is a process in a small machine. */
const MAX_RUNNING = 16;
const CANNOT_RUN = 126;

type ExecFrame = Extract<ClientFrame, { type: 'exec' }>;

export interface ShellCommandsOptions {
  readonly context: ProcessContext;
  readonly emit: (frame: AgentFrame) => void;
  readonly drained: () => Promise<void>;
}

/** The shell commands that clients run concurrently with the agent. */
export class ShellCommands {
  readonly #options: ShellCommandsOptions;
  readonly #running = new Set<{
    readonly id: string | undefined;
    readonly abort: AbortController;
  }>();

  constructor(options: ShellCommandsOptions) {
    this.#options = options;
  }

  /** Runs a command; its output and exit code are sent as frames. Never rejects. */
  async run({ command, id }: ExecFrame): Promise<void> {
    const { context, emit, drained } = this.#options;
    const named = id === undefined ? {} : { id };
    if (this.#running.size >= MAX_RUNNING) {
      emit({
        type: 'error',
        code: 'busy',
        message: `${MAX_RUNNING} commands run already.`,
        ...named,
      });
      return;
    }
    const entry = { id, abort: new AbortController() };
    this.#running.add(entry);
    try {
      const { exitCode } = await runShell(context, command, {
        signal: entry.abort.signal,
        onOutput: (type, data) => {
          emit({ type, data, ...named });
          return drained();
        },
      });
      emit({ type: 'exit', exit_code: exitCode, ...named });
    } catch (error) {
      if (context.signal.aborted) return;
      emit({ type: 'stderr', data: `${describe(error)}\n`, ...named });
      emit({ type: 'exit', exit_code: CANNOT_RUN, ...named });
    } finally {
      this.#running.delete(entry);
    }
  }

  /** Kills the commands with this id. */
  interrupt(id: string): void {
    for (const entry of this.#running) if (entry.id === id) entry.abort.abort();
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
