import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type SvcClient, SvcError } from '@svc/sdk';
import { vmRecords } from '@svc/service-driver';
import { killHard } from '../../test/machine/processes.ts';
import type { Crashes } from './crashes.ts';
import type { OperationCounts } from './operation-counts.ts';
import type { Random } from './random.ts';

const MOST_SANDBOXES = 3;
const CALL_MS = 60_000;
/** Between operations while the service is away. */
const AWAY_MS = 250;
const LARGEST_FILE = 2 * 1024 * 1024;

/** A sandbox of a virtual user. */
interface OwnedSandbox {
  readonly id: string;
  /** Digest of the file that was uploaded last. */
  file?: string;
  /** Whether its VM was killed. From then on the service may refuse every request. */
  killed: boolean;
}

/**
 * A customer in the soak test: performs random operations on its own sandboxes and checks the answers.
 * A refusal without an explanation is a failure.
 */
export class VirtualUser {
  readonly #client: SvcClient;
  readonly #random: Random;
  readonly #counts: OperationCounts;
  readonly #dataDir: string;
  readonly #crashes: Pick<Crashes, 'happenedSince'>;
  readonly #sandboxes: OwnedSandbox[] = [];
  /** Ids of the sandboxes whose VMs it killed. */
  readonly killed = new Set<string>();

  constructor(
    client: SvcClient,
    random: Random,
    counts: OperationCounts,
    dataDir: string,
    crashes: Pick<Crashes, 'happenedSince'>,
  ) {
    this.#client = client;
    this.#random = random;
    this.#counts = counts;
    this.#dataDir = dataDir;
    this.#crashes = crashes;
  }

  /** Performs operations until `deadline`, in milliseconds of `performance.now()`. */
  async run(end: AbortSignal): Promise<void> {
    while (!end.aborted) {
      await this.#step();
      if (this.#crashes.happenedSince(performance.now())) await sleep(AWAY_MS);
    }
  }

  async #step(): Promise<void> {
    const { sandboxes } = this.#client;
    const options = { timeoutMs: CALL_MS };
    if (this.#sandboxes.length === 0) return this.#attempt('create', () => this.#create());
    const sandbox = this.#sandboxes[this.#random.below(this.#sandboxes.length)];
    if (sandbox === undefined) return;
    const [name, operation] = this.#random.weighted<[string, () => Promise<unknown>]>([
      [this.#sandboxes.length < MOST_SANDBOXES ? 2 : 0, ['create', () => this.#create()]],
      [4, ['exec', () => this.#exec(sandbox)]],
      [2, ['upload', () => this.#upload(sandbox)]],
      [2, ['download', () => this.#download(sandbox)]],
      [2, ['pause', () => sandboxes.pause(sandbox.id, options)]],
      [2, ['resume', () => sandboxes.resume(sandbox.id, options)]],
      [1, ['get', () => sandboxes.get(sandbox.id, options)]],
      [1, ['list', () => sandboxes.list(options)]],
      [0.7, ['kill', () => this.#kill(sandbox)]],
      [0.7, ['abandon a create', () => this.#abandonCreate()]],
      [0.7, ['abandon a command', () => this.#abandonExec(sandbox)]],
      [2, ['delete', () => this.#delete(sandbox)]],
    ]);
    await this.#attempt(name, operation, sandbox);
  }

  /** Counts an operation. It may fail if its sandbox was killed, or if the service was away meanwhile. */
  async #attempt(
    name: string,
    operation: () => Promise<unknown>,
    sandbox?: OwnedSandbox,
  ): Promise<void> {
    const begun = performance.now();
    await this.#counts.count(
      name,
      operation,
      (error) =>
        error instanceof SvcError &&
        (this.#crashes.happenedSince(begun) || (sandbox?.killed === true && hasEnded(error))),
    );
  }

  async #create(): Promise<void> {
    const { vm_id: id } = await this.#client.sandboxes.create(
      { template: 'standard', idle_timeout_seconds: 600 },
      { timeoutMs: 2 * CALL_MS },
    );
    this.#sandboxes.push({ id, killed: false });
  }

  async #exec(sandbox: OwnedSandbox): Promise<void> {
    const word = `word-${this.#random.below(1e9)}`;
    const command = `echo ${word}; exit 7`;
    const answer = await this.#client.sandboxes.exec(sandbox.id, command, { timeoutMs: CALL_MS });
    if (answer.output !== `${word}\n` || answer.exit_code !== 7) {
      throw new Error(`echo ${word} answered ${JSON.stringify(answer)}`);
    }
  }

  async #upload(sandbox: OwnedSandbox): Promise<void> {
    const content = Buffer.alloc(1 + this.#random.below(LARGEST_FILE), this.#random.below(256));
    delete sandbox.file;
    await this.#client.sandboxes.files.write(sandbox.id, '/root/file', content, {
      timeoutMs: CALL_MS,
    });
    sandbox.file = digest(content);
  }

  async #download(sandbox: OwnedSandbox): Promise<void> {
    if (sandbox.file === undefined) return;
    const content = await this.#client.sandboxes.files.read(sandbox.id, '/root/file', {
      timeoutMs: CALL_MS,
    });
    if (digest(content) !== sandbox.file)
      throw new Error(`${sandbox.id} returned different file content`);
  }

  /** Kills the process of the sandbox's VM. */
  async #kill(sandbox: OwnedSandbox): Promise<void> {
    const vm = (await vmRecords(this.#dataDir)).find(({ vmId }) => vmId === sandbox.id);
    if (vm?.pid === undefined) return;
    sandbox.killed = true;
    this.killed.add(sandbox.id);
    killHard(vm.pid);
  }

  /** Disconnects before the answer. The sandbox may exist nevertheless, and then only the list shows it. */
  async #abandonCreate(): Promise<void> {
    const signal = AbortSignal.timeout(1 + this.#random.below(800));
    await this.#client.sandboxes
      .create({ template: 'standard', idle_timeout_seconds: 600 }, { signal })
      .then(
        ({ vm_id: id }) => this.#sandboxes.push({ id, killed: false }),
        (error: unknown) => {
          if (!signal.aborted) throw error;
        },
      );
  }

  async #abandonExec(sandbox: OwnedSandbox): Promise<void> {
    const signal = AbortSignal.timeout(1 + this.#random.below(500));
    await this.#client.sandboxes
      .exec(sandbox.id, 'sleep 60', { signal })
      .catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
  }

  async #delete(sandbox: OwnedSandbox): Promise<void> {
    this.#sandboxes.splice(this.#sandboxes.indexOf(sandbox), 1);
    await this.#client.sandboxes.delete(sandbox.id, { timeoutMs: 2 * CALL_MS });
  }
}

function digest(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Whether a call was refused because its sandbox has ended. */
function hasEnded({ code }: SvcError): boolean {
  return ['sandbox_not_running', 'sandbox_not_found', 'guest_unresponsive'].includes(code);
}
