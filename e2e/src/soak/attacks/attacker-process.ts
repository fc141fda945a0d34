import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { constants, setPriority } from 'node:os';
import type { ServiceAddress } from '@svc/service-driver';

const SCRIPT = new URL('./attacker.ts', import.meta.url);

/** What an attacker knows. */
export interface AttackerOptions {
  readonly address: ServiceAddress;
  readonly apiKey: string;
  /** Of somebody else. */
  readonly victimEmail: string;
  /** The endpoint of a scripted model. */
  readonly modelUrl: string;
}

/** An attacker in a process of its own, whose work is not what a client in this process waits for. */
export class AttackerProcess {
  readonly #child: ChildProcess;
  readonly #failed: Promise<never>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#failed = once(child, 'exit').then(([code]) => {
      throw new Error(`the attacker ended with ${code}`);
    });
    this.#failed.catch(() => undefined);
  }

  /** Begins all attacks. They end with {@link stop}, or with this process. */
  static start(options: AttackerOptions): AttackerProcess {
    // In a session of its own: kernels may share out the processor by session.
    const child = fork(SCRIPT, [JSON.stringify(options)], { detached: true });
    // Otherwise that of this process.
    if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_NORMAL);
    return new AttackerProcess(child);
  }

  /** Ends the attacks. Returns a line about each, with its rounds. */
  async stop(): Promise<string[]> {
    const answered = once(this.#child, 'message');
    this.#child.send('end');
    const [lines] = await Promise.race([answered, this.#failed]);
    this.#child.disconnect();
    await this.#failed.catch(() => undefined);
    return lines;
  }
}
