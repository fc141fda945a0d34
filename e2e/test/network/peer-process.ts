import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { PeerOptions, PeerRequest } from './peer.ts';

const DEADLINE_MS = 30_000;
const SCRIPT = new URL('./peer.ts', import.meta.url);

/** A running peer of the simulated network. It ends with the test process. */
export class PeerProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Starts a peer inside a network namespace and resolves when it is ready. */
  static async start(netns: string, options: PeerOptions): Promise<PeerProcess> {
    const child = fork(SCRIPT, [JSON.stringify(options)], {
      execPath: 'nsenter',
      execArgv: [`--net=/run/netns/${netns}`, process.execPath],
    });
    const failed = once(child, 'exit').then(() => {
      throw new Error(`the peer in ${netns} ended`);
    });
    failed.catch(() => undefined);
    await Promise.race([once(child, 'message'), failed]);
    return new PeerProcess(child);
  }

  /** The connections and datagrams that have arrived so far: `tcp FROM > TO`, `udp FROM > PAYLOAD`. */
  async arrivals(): Promise<string[]> {
    return (await this.#send({ kind: 'arrivals' })) as string[];
  }

  /** Tries to connect from the peer's namespace. Returns `connected` or the error. */
  async connect(host: string, port: number): Promise<string> {
    return (await this.#send({ kind: 'connect', host, port })) as string;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  /** Sends a request and waits for its answer. One at a time. */
  async #send(request: PeerRequest): Promise<unknown> {
    const answered = once(this.#child, 'message', { signal: AbortSignal.timeout(DEADLINE_MS) });
    this.#child.send(request);
    const [answer] = await answered;
    return answer;
  }
}
