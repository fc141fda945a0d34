import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { RestoreOrder, RestoreTimes } from './bare-restore.ts';
import type { Snapshot } from './snapshot.ts';

const run = promisify(execFile);
const PROGRAM = fileURLToPath(new URL('bare-restore.ts', import.meta.url));
const RUN_MS = 120_000;

/** A prepared network namespace with a tap device, in which a program restores VMs without the service. */
export class BareMachine {
  readonly #snapshot: Snapshot;
  readonly #scratch: string;
  readonly #netns: string;
  readonly #child: ChildProcess;
  #runs = 0;

  private constructor(snapshot: Snapshot, scratch: string, netns: string, child: ChildProcess) {
    this.#snapshot = snapshot;
    this.#scratch = scratch;
    this.#netns = netns;
    this.#child = child;
  }

  static async open(snapshot: Snapshot, scratch: string): Promise<BareMachine> {
    const netns = `bench-${process.pid}`;
    await run('ip', ['netns', 'add', netns]);
    try {
      for (const command of NETWORK) await run('ip', ['-n', netns, ...command.split(' ')]);
      const words = [`--net=/run/netns/${netns}`, process.execPath, PROGRAM];
      const child = spawn('nsenter', words, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
      await once(child, 'spawn');
      return new BareMachine(snapshot, scratch, netns, child);
    } catch (error) {
      await run('ip', ['netns', 'delete', netns]);
      throw error;
    }
  }

  /** Restores a VM, waits until SSH answers, and removes the VM. */
  async restore(): Promise<RestoreTimes> {
    this.#runs += 1;
    const order: RestoreOrder = {
      snapshot: this.#snapshot,
      directory: join(this.#scratch, `bare-${this.#runs}`),
    };
    const settled = new AbortController();
    const signal = withDeadline(settled.signal, RUN_MS);
    const answer = once(this.#child, 'message', { signal });
    const ended = once(this.#child, 'exit', { signal }).then(() => {
      throw new Error('the bare restore failed; see its output above');
    });
    this.#child.send(order);
    try {
      const [times] = await Promise.race([answer, ended]);
      return times as RestoreTimes;
    } finally {
      settled.abort();
    }
  }

  async close(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const exited = once(this.#child, 'exit');
      this.#child.disconnect();
      await exited;
    }
    await run('ip', ['netns', 'delete', this.#netns]);
  }
}

const NETWORK = [
  'tuntap add dev tap0 mode tap vnet_hdr',
  'link set tap0 address 02:00:00:00:00:01 up',
  'addr add 172.30.0.1/30 dev tap0',
  'neigh replace 172.30.0.2 lladdr 02:00:00:00:00:02 nud permanent dev tap0',
];
