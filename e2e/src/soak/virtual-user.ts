import { createHash } from 'node:crypto';
import type { SvcClient } from '@svc/sdk';
import { SvcError } from '@svc/sdk';
import { vmRecords } from '@svc/service-driver';
import { killHard } from '../../test/machine/processes.ts';
import type { OperationCounts } from './operation-counts.ts';
import type { Random } from './random.ts';

const MOST_SANDBOXES = 3;
const CALL_MS = 60_000;
const LARGEST_FILE = 2 * 1024 * 1024;

/** What an actor knows of a sandbox of its own. */
interface Held {
  readonly id: string;
  /** Digest of the file that was written last. */
  file?: string;
  /** Somebody killed its VM: from now on any refusal is right. */
  killed: boolean;
}

/**
 * One customer of the soak: does one random thing after another with its own sandboxes, and checks what
 * comes back. What is refused, it tells apart: a refusal that nothing explains is a failure.
 */
export class VirtualUser {
  readonly #client: SvcClient;
  readonly #random: Random;
  readonly #tally: OperationCounts;
  readonly #dataDir: string;
  readonly #held: Held[] = [];

  constructor(client: SvcClient, random: Random, tally: OperationCounts, dataDir: string) {
    this.#client = client;
    this.#random = random;
    this.#tally = tally;
    this.#dataDir = dataDir;
  }

  /** Goes on until the time is over. */
  async run(until: number): Promise<void> {
    while (performance.now() < until) await this.#step();
  }

  async #step(): Promise<void> {
    const { sandboxes } = this.#client;
    const options = { timeoutMs: CALL_MS };
    if (this.#held.length === 0) return this.#create();
    const held = this.#held[this.#random.below(this.#held.length)];
    if (held === undefined) return;
    const action = this.#random.weighted<[string, () => Promise<unknown>]>([
      [this.#held.length < MOST_SANDBOXES ? 2 : 0, ['create', () => this.#create()]],
      [4, ['exec', () => this.#exec(held)]],
      [2, ['upload', () => this.#upload(held)]],
      [2, ['download', () => this.#download(held)]],
      [2, ['pause', () => sandboxes.pause(held.id, options)]],
      [2, ['resume', () => sandboxes.resume(held.id, options)]],
      [1, ['get', () => sandboxes.get(held.id, options)]],
      [1, ['list', () => sandboxes.list(options)]],
      [0.7, ['kill', () => this.#kill(held)]],
      [0.7, ['abandon a create', () => this.#abandonCreate()]],
      [0.7, ['abandon a command', () => this.#abandonExec(held)]],
      [2, ['delete', () => this.#delete(held)]],
    ]);
    await this.#tally.count(action[0], action[1], () => held.killed);
  }

  async #create(): Promise<void> {
    const { vm_id: id } = await this.#client.sandboxes.create(
      { template: 'standard', idle_timeout_seconds: 600 },
      { timeoutMs: 2 * CALL_MS },
    );
    this.#held.push({ id, killed: false });
  }

  async #exec(held: Held): Promise<void> {
    const word = `word-${this.#random.below(1e9)}`;
    const command = `echo ${word}; exit 7`;
    const answer = await this.#client.sandboxes.exec(held.id, command, { timeoutMs: CALL_MS });
    if (answer.output !== `${word}\n` || answer.exit_code !== 7) {
      throw new Error(`echo ${word} answered ${JSON.stringify(answer)}`);
    }
  }

  async #upload(held: Held): Promise<void> {
    const content = Buffer.alloc(1 + this.#random.below(LARGEST_FILE), this.#random.below(256));
    delete held.file;
    await this.#client.sandboxes.files.write(held.id, '/root/file', content, {
      timeoutMs: CALL_MS,
    });
    held.file = digest(content);
  }

  async #download(held: Held): Promise<void> {
    if (held.file === undefined) return;
    const content = await this.#client.sandboxes.files.read(held.id, '/root/file', {
      timeoutMs: CALL_MS,
    });
    if (digest(content) !== held.file) throw new Error(`${held.id} gave another file back`);
  }

  /** Kills the VM's process. */
  async #kill(held: Held): Promise<void> {
    const vm = (await vmRecords(this.#dataDir)).find(({ vmId }) => vmId === held.id);
    if (vm?.pid === undefined) return;
    held.killed = true;
    killHard(vm.pid);
  }

  /** Leaves before the answer. Without a key of its own the sandbox is found by nobody but the list. */
  async #abandonCreate(): Promise<void> {
    const signal = AbortSignal.timeout(1 + this.#random.below(800));
    await this.#client.sandboxes
      .create({ template: 'standard', idle_timeout_seconds: 600 }, { signal })
      .then(
        ({ vm_id: id }) => this.#held.push({ id, killed: false }),
        (error: unknown) => {
          if (!signal.aborted) throw error;
        },
      );
  }

  async #abandonExec(held: Held): Promise<void> {
    const signal = AbortSignal.timeout(1 + this.#random.below(500));
    await this.#client.sandboxes.exec(held.id, 'sleep 60', { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  async #delete(held: Held): Promise<void> {
    this.#held.splice(this.#held.indexOf(held), 1);
    await this.#client.sandboxes.delete(held.id, { timeoutMs: 2 * CALL_MS });
  }
}

/** Whether a call was refused because the sandbox has ended. */
export function isEnded(error: unknown): boolean {
  return (
    error instanceof SvcError &&
    ['sandbox_not_running', 'sandbox_not_found', 'guest_unresponsive'].includes(error.code)
  );
}

function digest(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
