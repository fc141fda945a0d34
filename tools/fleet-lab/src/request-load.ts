import { setTimeout as sleep } from 'node:timers/promises';
import type { SvcClient } from '@svc/sdk';

const SANDBOXES = 2;
const PAUSE_MS = 200;
const LIFETIME = { idle_timeout_seconds: 3600, max_lifetime_seconds: 7200 };

/**
 * Requests without a pause, for two sandboxes: short commands, long ones, and looks at their records, and sandboxes that
 * come and go. It takes note of each that fails. Whatever is not safe to repeat is sent once.
 */
export class RequestLoad implements AsyncDisposable {
  readonly #client: SvcClient;
  readonly #sandboxes: readonly string[];
  readonly #failures: string[] = [];
  readonly #stop = new AbortController();
  readonly #loops: readonly Promise<void>[];
  #answered = 0;
  #longestMs = 0;

  private constructor(client: SvcClient, sandboxes: readonly string[], longSeconds: number) {
    this.#client = client;
    this.#sandboxes = sandboxes;
    const { sandboxes: api } = client;
    this.#loops = [
      ...sandboxes.flatMap((id) => [
        this.#repeat(`a command in ${id}`, async () => {
          const { stdout } = await api.exec(id, 'echo here');
          if (stdout !== 'here\n') throw new Error(`printed ${JSON.stringify(stdout)}`);
        }),
        this.#repeat(
          `a long command in ${id}`,
          async () => {
            const { exit_code: code } = await api.exec(id, `sleep ${longSeconds}; exit 7`);
            if (code !== 7) throw new Error(`exited with ${code}`);
          },
          longSeconds * 1000,
        ),
        this.#repeat(`the record of ${id}`, async () => {
          const { state } = await api.get(id);
          if (state !== 'running') throw new Error(`it is ${state}`);
        }),
      ]),
      this.#repeat('a sandbox that comes and goes', async () => {
        const { vm_id: id } = await api.create({ template: 'standard', ...LIFETIME });
        await api.delete(id);
      }),
    ];
  }

  /** Starts it, once its sandboxes run. Its long commands take `longSeconds` each. */
  static async start(client: SvcClient, longSeconds: number): Promise<RequestLoad> {
    const ids: string[] = [];
    while (ids.length < SANDBOXES) {
      ids.push((await client.sandboxes.create({ template: 'standard', ...LIFETIME })).vm_id);
    }
    return new RequestLoad(client, ids, longSeconds);
  }

  /** The number of requests that were answered. */
  get answered(): number {
    return this.#answered;
  }

  /** The longest time that an answer took beyond that of its command, in ms. */
  get longestMs(): number {
    return this.#longestMs;
  }

  /** Ends it, lets the requests in progress end, and returns each that failed. */
  async problems(): Promise<string[]> {
    this.#stop.abort();
    await Promise.all(this.#loops);
    return this.#failures;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.problems();
    for (const id of this.#sandboxes) await this.#client.sandboxes.delete(id);
  }

  async #repeat(what: string, request: () => Promise<void>, usualMs = 0): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const begun = performance.now();
      try {
        await request();
        this.#answered += 1;
      } catch (error) {
        this.#failures.push(`${new Date().toISOString()} ${what}: ${String(error)}`);
      }
      this.#longestMs = Math.max(this.#longestMs, performance.now() - begun - usualMs);
      await sleep(PAUSE_MS);
    }
  }
}
