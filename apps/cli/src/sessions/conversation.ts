import { randomUUID } from 'node:crypto';
import type { FrameErrorCode } from '@svc/contract';
import type { SessionConnection, SessionFrame } from '@svc/sdk';
import { CliError } from '../output/errors.ts';

/** The outcome of a task or a command. */
export type Outcome = 'completed' | 'failed' | 'interrupted';

/** Codes of errors that reject a task or a command. */
const REJECTIONS: readonly string[] = ['busy', 'task_not_accepted'] satisfies FrameErrorCode[];

interface Pending {
  readonly id: string;
  readonly outcome: PromiseWithResolvers<Outcome>;
  /** Gives it again after the loss of its machine; undefined if that is not safe. */
  readonly repeat: (() => void) | undefined;
  isInterrupted: boolean;
}

/** Runs tasks and commands over a connection, one at a time, and passes every frame to `show`. */
export class Conversation {
  /** Aborts when the connection of the session ends; its reason says why. */
  readonly over: AbortSignal;
  readonly #connection: SessionConnection;
  readonly #show: (frame: SessionFrame) => void;
  readonly #ended = new AbortController();
  readonly #ready = Promise.withResolvers<void>();
  #pending: Pending | undefined;
  #started = 0;

  constructor(connection: SessionConnection, show: (frame: SessionFrame) => void) {
    this.#connection = connection;
    this.#show = show;
    this.over = this.#ended.signal;
    this.#ready.promise.catch(() => undefined);
    this.#follow().then(
      () => this.#end(sessionEnded()),
      (error) => this.#end(error),
    );
  }

  /** Resolves when the agent is ready; rejects if the connection ends first. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Whether a task or a command is running. */
  get isBusy(): boolean {
    return this.#pending !== undefined;
  }

  /** An identifier that changes whenever a task or command starts or ends. */
  get current(): string {
    return this.#pending?.id ?? `idle after ${this.#started}`;
  }

  /**
   * Runs a task of the agent and waits for its outcome. If the session loses its machine meanwhile, the task is given
   * to its next start again. Rejects if the connection ends first.
   */
  task(prompt: string): Promise<Outcome> {
    return this.#run((id) => this.#connection.task(prompt, { id }), { isRepeatable: true });
  }

  /**
   * Runs a shell command in the sandbox, in parallel with the agent, and waits for its outcome. It fails, with an error
   * frame `command_lost`, if the session loses its machine meanwhile.
   */
  exec(command: string): Promise<Outcome> {
    return this.#run((id) => this.#connection.exec(command, { id }), { isRepeatable: false });
  }

  interrupt(): void {
    const pending = this.#pending;
    if (pending !== undefined) pending.isInterrupted = true;
    this.#connection.interrupt(pending === undefined ? {} : { id: pending.id });
  }

  async #run(
    send: (id: string) => void,
    { isRepeatable }: { readonly isRepeatable: boolean },
  ): Promise<Outcome> {
    this.over.throwIfAborted();
    const id = randomUUID();
    const pending: Pending = {
      id,
      outcome: Promise.withResolvers<Outcome>(),
      repeat: isRepeatable ? () => send(id) : undefined,
      isInterrupted: false,
    };
    this.#pending = pending;
    this.#started += 1;
    try {
      send(id);
      return await pending.outcome.promise;
    } finally {
      this.#pending = undefined;
    }
  }

  async #follow(): Promise<void> {
    for await (const frame of this.#connection) {
      this.#show(frame);
      if (frame.type === 'ready') {
        this.#ready.resolve();
        this.#startedAgain(frame.unanswered ?? []);
      }
      const outcome = this.#pending && outcomeOf(frame, this.#pending.id);
      if (outcome !== undefined) this.#pending?.outcome.resolve(outcome);
    }
  }

  /** The session has lost the machine that had these tasks and commands. */
  #startedAgain(unanswered: readonly string[]): void {
    const pending = this.#pending;
    if (pending === undefined || !unanswered.includes(pending.id)) return;
    if (pending.isInterrupted) {
      pending.outcome.resolve('interrupted');
    } else if (pending.repeat !== undefined) {
      pending.repeat();
    } else {
      this.#show(commandLost(pending.id));
      pending.outcome.resolve('failed');
    }
  }

  #end(error: unknown): void {
    this.#ended.abort(error);
    this.#ready.reject(error);
    this.#pending?.outcome.reject(error);
  }
}

/** The outcome of the task or command with this id, if this frame ends it. */
function outcomeOf(frame: SessionFrame, id: string): Outcome | undefined {
  if (!('id' in frame) || frame.id !== id) return undefined;
  if (frame.type === 'task_completed') return frame.status;
  if (frame.type === 'exit') return frame.exit_code === 0 ? 'completed' : 'failed';
  // A rejected task produces no further frames.
  return frame.type === 'error' && REJECTIONS.includes(frame.code) ? 'failed' : undefined;
}

function commandLost(id: string): SessionFrame {
  return {
    type: 'error',
    code: 'command_lost',
    message:
      'the sandbox was lost before the command ended; run it again if it may run a second time',
    id,
    ts: new Date().toISOString(),
  };
}

function sessionEnded(): CliError {
  return new CliError('session_ended', 'the session has ended', {
    next: '`svc session resume <id>` continues it',
  });
}
