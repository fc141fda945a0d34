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

  /** Runs a task of the agent and waits for its outcome. Rejects if the connection ends first. */
  task(prompt: string): Promise<Outcome> {
    return this.#run((id) => this.#connection.task(prompt, { id }));
  }

  /** Runs a shell command in the sandbox, in parallel with the agent, and waits for its outcome. */
  exec(command: string): Promise<Outcome> {
    return this.#run((id) => this.#connection.exec(command, { id }));
  }

  interrupt(): void {
    const id = this.#pending?.id;
    this.#connection.interrupt(id === undefined ? {} : { id });
  }

  async #run(send: (id: string) => void): Promise<Outcome> {
    this.over.throwIfAborted();
    const pending = { id: randomUUID(), outcome: Promise.withResolvers<Outcome>() };
    this.#pending = pending;
    this.#started += 1;
    try {
      send(pending.id);
      return await pending.outcome.promise;
    } finally {
      this.#pending = undefined;
    }
  }

  async #follow(): Promise<void> {
    for await (const frame of this.#connection) {
      this.#show(frame);
      if (frame.type === 'ready') this.#ready.resolve();
      const outcome = this.#pending && outcomeOf(frame, this.#pending.id);
      if (outcome !== undefined) this.#pending?.outcome.resolve(outcome);
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

function sessionEnded(): CliError {
  return new CliError('session_ended', 'the session has ended', {
    next: '`svc session resume <id>` continues it',
  });
}
