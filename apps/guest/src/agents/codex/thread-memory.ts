/** The id of the codex thread that is the conversation. Its transcript is stored below CODEX_HOME. */
export class ThreadMemory {
  thread: string | undefined;
  readonly #log: (text: string) => void;

  constructor(thread: string | undefined, log: (text: string) => void) {
    this.thread = thread;
    this.#log = log;
  }

  /** Codex cannot resume the thread: a new conversation begins, if codex can begin one. */
  lost(error: unknown): void {
    this.#log(`The thread ${this.thread} cannot be resumed; a new one begins: ${String(error)}\n`);
  }
}
