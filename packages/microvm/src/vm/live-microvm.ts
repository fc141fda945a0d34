import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { Mutex, withDeadline } from '@svc/service-kit/concurrency';
import { availableBytes } from '../disk-space.ts';
import { GuestConnections } from '../guest/guest-connections.ts';
import type { MicrovmTree } from '../guest/tree/guest-tree.ts';
import type {
  Microvm,
  MicrovmDownload,
  MicrovmExecRequest,
  MicrovmExecResult,
  PersonalizeOptions,
} from '../microvm.ts';
import { MicrovmError } from '../microvm-error.ts';
import type { NetworkSlot } from '../network/index.ts';
import { CPU_FRACTION } from '../vmm/resource-limits.ts';
import type { VmProcess } from '../vmm/vmm.ts';
import { diskOfVm } from './disk-of-vms.ts';
import { type VmRecord, writeVmRecord } from './vm-record.ts';

const CLOCK_TICKS_PER_SECOND = 100;
const UPDATE_MS = 10_000;
/** Free bytes on the machine's disk below which uploads are refused. */
const MIN_FREE_BYTES_FOR_UPLOAD = 128 * 1024 * 1024;

export interface LiveMicrovmOptions {
  readonly directory: string;
  readonly record: VmRecord;
  readonly slot: NetworkSlot;
  readonly process: VmProcess;
  readonly privateKey: string;
  readonly paused: boolean;
  /** Gives the VM its share of the processor. Reports failures itself. */
  readonly assign: (owner: string) => void;
  /** Releases all resources of the VM. Its process has ended. */
  readonly release: () => Promise<void>;
}

/** A VM with a running process, and the connections into its guest. */
export class LiveMicrovm implements Microvm {
  readonly exited: Promise<{ reason: string }>;
  /** Settles (never rejects) when all resources of the VM are released. */
  readonly released: Promise<void>;
  paused: boolean;
  /** Whether a hold has perhaps stopped it, although it does not count as paused. */
  #mayBeStopped = false;
  readonly #options: LiveMicrovmOptions;
  readonly #guest: GuestConnections;
  /** Serialises changes of the record and of the paused state. */
  readonly #changes = new Mutex();
  #record: VmRecord;
  #destroying: Promise<void> | undefined;
  /** Aborts when the VM process has ended. */
  readonly #gone = new AbortController();
  #ended = false;
  readonly #markReleased: () => void;

  constructor(options: LiveMicrovmOptions) {
    this.#options = options;
    this.#record = options.record;
    this.paused = options.paused;
    this.#guest = new GuestConnections({
      host: options.slot.address,
      token: options.record.token,
      privateKey: options.privateKey,
      hostKey: Buffer.from(options.record.hostKey, 'base64'),
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.released = promise;
    this.#markReleased = resolve;
    this.exited = options.process.exited.then(() => {
      this.#gone.abort(new MicrovmError('vm_gone', 'the sandbox has ended'));
      this.#guest.close();
      return { reason: this.#destroying === undefined ? 'the VM process ended' : 'destroyed' };
    });
  }

  get id(): string {
    return this.#record.id;
  }
  get template(): string {
    return this.#record.template;
  }
  get image(): string {
    return this.#record.rootfs;
  }
  get vcpu(): number {
    return this.#record.vcpu;
  }
  get memoryMib(): number {
    return this.#record.memoryMib;
  }
  get diskMib(): number {
    return this.#record.diskMib;
  }
  get cpuFraction(): number {
    return CPU_FRACTION;
  }
  get host(): string {
    return this.#options.slot.address;
  }
  get hostPort(): number {
    return this.#guest.sshPort;
  }
  get labels(): Record<string, unknown> {
    return { ...this.#record.labels };
  }

  get slotIndex(): number {
    return this.#options.slot.index;
  }

  /** Opens the SSH connection that all commands share. */
  async connect(signal: AbortSignal): Promise<void> {
    await this.#guest.connect(signal);
  }

  async label(data: Record<string, unknown>): Promise<void> {
    await this.#update({ labels: data });
  }

  async personalize(
    { hostname, env, owner }: PersonalizeOptions,
    signal: AbortSignal,
  ): Promise<void> {
    if (hostname !== this.#record.hostname) await this.#guest.setName(hostname, signal);
    await this.#update({ hostname, env, ...(owner === undefined ? {} : { owner }) });
    // Not awaited: it takes up to some 60 ms, and nobody depends on it.
    if (owner !== undefined) this.#options.assign(owner);
  }

  async exec(request: MicrovmExecRequest, signal: AbortSignal): Promise<MicrovmExecResult> {
    this.#assertRunnable();
    return this.#whileAlive(() => this.#guest.exec(request, this.#record.env, signal));
  }

  async checkDirectory(path: string, signal: AbortSignal): Promise<void> {
    this.#assertRunnable();
    await this.#whileAlive(() => this.#guest.checkDirectory(path, signal));
  }

  async upload(path: string, source: Readable, signal: AbortSignal): Promise<void> {
    this.#assertRunnable();
    if ((await availableBytes(this.#options.directory)) < MIN_FREE_BYTES_FOR_UPLOAD) {
      throw hostDiskFull();
    }
    await this.#whileAlive(() => this.#guest.upload(path, source, signal));
  }

  async download(path: string, signal: AbortSignal): Promise<MicrovmDownload> {
    this.#assertRunnable();
    return this.#whileAlive(() => this.#guest.download(path, signal));
  }

  tree(root: string): MicrovmTree {
    const tree = this.#guest.tree(root);
    const alive = (signal: AbortSignal) => {
      this.#assertRunnable();
      return AbortSignal.any([signal, this.#gone.signal]);
    };
    return {
      list: async (request, signal, whileLooking) =>
        tree.list(request, alive(signal), whileLooking),
      read: (ranges, signal) => tree.read(ranges, alive(signal)),
      write: async (entries, signal) => tree.write(entries, alive(signal)),
    };
  }

  async dialAgent(signal: AbortSignal): Promise<Socket> {
    this.#assertLives();
    const alive = AbortSignal.any([signal, this.#gone.signal]);
    return this.#whileAlive(() => this.#guest.dialAgent(alive));
  }

  async dialPort(port: number, signal: AbortSignal): Promise<Socket> {
    this.#assertLives();
    const alive = AbortSignal.any([signal, this.#gone.signal]);
    return this.#whileAlive(() => this.#guest.dialPort(port, alive));
  }

  async pause(signal: AbortSignal): Promise<void> {
    const { process } = this.#options;
    await this.#changes.run(async () => {
      this.#assertLives();
      if (this.paused) return;
      await this.#orUndo(
        () => withCode('pause_failed', () => process.pause(signal)),
        async (deadline) => {
          await process.resume(deadline);
          await this.#correctClock(deadline);
        },
      );
      this.paused = true;
    });
  }

  async hold(signal: AbortSignal): Promise<void> {
    await this.#changes.run(async () => {
      this.#assertLives();
      if (this.paused) return;
      this.#mayBeStopped = true;
      await withCode('pause_failed', () => this.#options.process.pause(signal));
      this.paused = true;
    });
  }

  async resume(signal: AbortSignal): Promise<void> {
    const { process } = this.#options;
    await this.#changes.run(async () => {
      this.#assertLives();
      if (!this.paused && !this.#mayBeStopped) return;
      await this.#orUndo(
        () =>
          withCode('resume_failed', async () => {
            await process.resume(signal);
            await this.#correctClock(signal);
          }),
        (deadline) => process.pause(deadline),
      );
      this.paused = false;
      this.#mayBeStopped = false;
    });
    this.#guest.endLeftCommands();
  }

  async cpuSeconds(): Promise<number> {
    const { pid, startTicks } = this.#record.process;
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // After the VM has ended, another process may have its pid.
    if (Number(fields[19]) !== startTicks) {
      throw new MicrovmError('vm_gone', 'the sandbox has ended');
    }
    return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
  }

  async diskUsedBytes(): Promise<number> {
    return diskOfVm(this.#options.directory);
  }

  destroy(): Promise<void> {
    this.#destroying ??= this.#end().catch((error: unknown) => {
      // The next call tries again. Until then the VM counts as ended.
      this.#ended = true;
      this.#destroying = undefined;
      throw error;
    });
    return this.#destroying;
  }

  /** Closes the connections to the VM and leaves it running. */
  detach(): void {
    this.#guest.close();
    this.#options.process.detach();
  }

  async #end(): Promise<void> {
    this.#guest.close();
    await this.#options.process.kill();
    // Waits for a pending write of the record, which would recreate the removed directory.
    await this.#changes.run(() => this.#options.release());
    this.#markReleased();
  }

  async #update(change: Partial<VmRecord>): Promise<void> {
    await this.#changes.run(async () => {
      this.#assertLives();
      const record = { ...this.#record, ...change };
      await writeVmRecord(this.#options.directory, record);
      this.#record = record;
    });
  }

  /** Reports `vm_gone` instead of `guest_unreachable` when the VM ended during `work`. */
  async #whileAlive<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof MicrovmError && error.code === 'guest_unreachable') this.#assertLives();
      throw error;
    }
  }

  /**
   * Undoes a change that fails, since the VMM also does what it answers too late. It carries commands out in their order, so
   * one that it does not answer at all undoes the change as well.
   */
  async #orUndo(
    change: () => Promise<void>,
    undo: (deadline: AbortSignal) => Promise<void>,
  ): Promise<void> {
    try {
      await change();
    } catch (error) {
      if (this.#gone.signal.aborted) throw error;
      await undo(AbortSignal.timeout(UPDATE_MS)).catch(() => undefined);
      throw error;
    }
  }

  /** Sets the guest's clock, which stopped during the pause. A guest that cannot do this has not been resumed. */
  async #correctClock(signal: AbortSignal): Promise<void> {
    const alive = AbortSignal.any([signal, this.#gone.signal]);
    await this.#guest.setClock(withDeadline(alive, UPDATE_MS));
  }

  #assertRunnable(): void {
    this.#assertLives();
    if (this.#options.process.stalled) throw hostDiskFull();
  }

  #assertLives(): void {
    if (this.#gone.signal.aborted || this.#ended || this.#destroying !== undefined) {
      throw new MicrovmError('vm_gone', 'the sandbox has ended');
    }
  }
}

function hostDiskFull(): MicrovmError {
  return new MicrovmError('host_disk_full', 'the disk of the machine is full');
}

async function withCode(code: 'pause_failed' | 'resume_failed', work: () => Promise<void>) {
  try {
    await work();
  } catch (error) {
    if (error instanceof MicrovmError && error.code === 'vm_gone') throw error;
    const message = error instanceof Error ? error.message : String(error);
    throw new MicrovmError(code, message, { cause: error });
  }
}
