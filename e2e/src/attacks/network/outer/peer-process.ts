import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { PeerOptions, PeerQuestion } from './peer.ts';

const DEADLINE_MS = 30_000;
const SCRIPT = new URL('./peer.ts', import.meta.url);

/** A running machine of the outer network. It ends with the test process. */
export class PeerProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Starts one inside a network namespace; resolves when it serves. */
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

  /** Whoever reached it so far: `tcp FROM > TO`, `udp FROM > PAYLOAD`. */
  async arrivals(): Promise<string[]> {
    return (await this.#ask({ ask: 'arrivals' })) as string[];
  }

  /** `connected`, or why not. */
  async connect(host: string, port: number): Promise<string> {
    return (await this.#ask({ ask: 'connect', host, port })) as string;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  /** One question at a time. */
  async #ask(question: PeerQuestion): Promise<unknown> {
    const answered = once(this.#child, 'message', { signal: AbortSignal.timeout(DEADLINE_MS) });
    this.#child.send(question);
    const [answer] = await answered;
    return answer;
  }
}
