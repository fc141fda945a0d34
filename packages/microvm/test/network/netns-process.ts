import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';

const CALL_DEADLINE_MS = 20_000;

interface Reply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: { readonly message: string; readonly code?: string };
}

/** Methods of a script in another process that a test calls by name. */
export type Methods = Record<string, (...args: never[]) => Promise<unknown>>;

/** A script of this folder in a process of its own inside a network namespace. Tests call its methods. */
export class NetnsProcess<T extends Methods> {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #lastId = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on('message', (message) => {
      const reply = message as Reply;
      this.#waiting.get(reply.id)?.(reply);
    });
    child.once('exit', () => {
      for (const settle of this.#waiting.values()) {
        settle({ id: 0, error: { message: 'the process has ended' } });
      }
    });
  }

  static async start<T extends Methods>(netns: string, script: URL): Promise<NetnsProcess<T>> {
    const child = fork(script, {
      execPath: 'nsenter',
      execArgv: [`--net=/run/netns/${netns}`, process.execPath],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    await once(child, 'message');
    return new NetnsProcess<T>(child);
  }

  /** Calls a method. A rejection keeps its message and code. */
  async call<K extends keyof T & string>(
    method: K,
    ...args: Parameters<T[K]>
  ): Promise<Awaited<ReturnType<T[K]>>> {
    const id = ++this.#lastId;
    const { promise, resolve } = Promise.withResolvers<Reply>();
    this.#waiting.set(id, resolve);
    this.#child.send({ id, method, args });
    const deadline = setTimeout(
      () => resolve({ id, error: { message: `${method} took too long` } }),
      CALL_DEADLINE_MS,
    );
    const reply = await promise.finally(() => clearTimeout(deadline));
    this.#waiting.delete(id);
    if (reply.error)
      throw Object.assign(new Error(reply.error.message), { code: reply.error.code });
    return reply.value as Awaited<ReturnType<T[K]>>;
  }

  /** Kills the process, like a crash. */
  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}
