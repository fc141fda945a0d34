/** Which of codex's threads is the conversation. Its transcript lies below CODEX_HOME. */
export class ThreadMemory {
  thread: string | undefined;
  readonly #log: (text: string) => void;

  constructor(thread: string | undefined, log: (text: string) => void) {
    this.thread = thread;
    this.#log = log;
  }

  /** Codex cannot go on with the thread: the conversation starts anew. */
  lost(error: unknown): void {
    this.#log(`The thread ${this.thread} cannot be resumed, a new one begins: ${String(error)}\n`);
    this.thread = undefined;
  }
}
