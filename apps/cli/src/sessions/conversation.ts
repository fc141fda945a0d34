import { randomUUID } from 'node:crypto';
import type { SessionConnection, SessionFrame } from '@svc/sdk';
import { CliError } from '../output/cli-error.ts';

/** How a task, or a command, ended. */
export type Outcome = 'completed' | 'failed' | 'interrupted';

interface Pending {
  readonly id: string;
  readonly over: PromiseWithResolvers<Outcome>;
}

/** Tasks over a connection: shows every frame, and tells when what was asked has ended. */
export class Conversation {
  /** Aborts when the session's connection has ended, with why. */
  readonly over: AbortSignal;
  readonly #connection: SessionConnection;
  readonly #show: (frame: SessionFrame) => void;
  readonly #ended = new AbortController();
  readonly #ready = Promise.withResolvers<void>();
  #pending: Pending | undefined;
  #asked = 0;

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

  /** Settles when the agent is there. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Whether something was asked that has not ended. */
  get isBusy(): boolean {
    return this.#pending !== undefined;
  }

  /** What goes on, or nothing, as a name that changes with it. */
  get current(): string {
    return this.#pending?.id ?? `nothing after ${this.#asked}`;
  }

  /** Has the agent do something, and waits until it is done. Rejects when the connection ends before. */
  task(prompt: string): Promise<Outcome> {
    return this.#ask((id) => this.#connection.task(prompt, { id }));
  }

  /** Runs a command beside the agent. */
  exec(command: string): Promise<Outcome> {
    return this.#ask((id) => this.#connection.exec(command, { id }));
  }

  interrupt(): void {
    const id = this.#pending?.id;
    this.#connection.interrupt(id === undefined ? {} : { id });
  }

  async #ask(send: (id: string) => void): Promise<Outcome> {
    this.over.throwIfAborted();
    const pending = { id: randomUUID(), over: Promise.withResolvers<Outcome>() };
    this.#pending = pending;
    this.#asked += 1;
    try {
      send(pending.id);
      return await pending.over.promise;
    } finally {
      this.#pending = undefined;
    }
  }

  async #follow(): Promise<void> {
    for await (const frame of this.#connection) {
      this.#show(frame);
      if (frame.type === 'ready') this.#ready.resolve();
      const outcome = this.#pending && outcomeOf(frame, this.#pending.id);
      if (outcome !== undefined) this.#pending?.over.resolve(outcome);
    }
  }

  #end(error: unknown): void {
    this.#ended.abort(error);
    this.#ready.reject(error);
    this.#pending?.over.reject(error);
  }
}

/** How what was asked under `id` has ended, if this frame says so. */
function outcomeOf(frame: SessionFrame, id: string): Outcome | undefined {
  if (!('id' in frame) || frame.id !== id) return undefined;
  if (frame.type === 'task_completed') return frame.status;
  if (frame.type === 'exit') return frame.exit_code === 0 ? 'completed' : 'failed';
  // Refused, so that nothing else will come of it.
  return frame.type === 'error' && frame.code === 'busy' ? 'failed' : undefined;
}

function sessionEnded(): CliError {
  return new CliError('session_ended', 'the session has ended', {
    next: '`svc session resume <id>` goes on where it was',
  });
}
