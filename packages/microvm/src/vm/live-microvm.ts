import { readFile, statfs } from 'node:fs/promises';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { GUEST_LINK } from '@svc/contract';
import { Mutex, withDeadline } from '@svc/service-kit/concurrency';
import {
  type Microvm,
  type MicrovmDownload,
  MicrovmError,
  type MicrovmExecRequest,
  type MicrovmExecResult,
  type PersonalizeOptions,
} from '../facade.ts';
import { AgentLines } from '../guest/agent-lines.ts';
import { GuestChannel } from '../guest/guest-channel.ts';
import { runCommand } from '../guest/run-command.ts';
import { SshChannel } from '../guest/ssh-channel.ts';
import type { NetworkSlot } from '../network/index.ts';
import type { VmProcess } from '../vmm/vmm.ts';
import { type VmRecord, writeVmRecord } from './vm-record.ts';

/** Share of one core that each vCPU may use. */
export const CPU_FRACTION = 1;

const CLOCK_TICKS_PER_SECOND = 100;
const UPDATE_MS = 10_000;
/** What the machine's disk must have left for a file to be taken in, in bytes. */
const UPLOAD_ROOM = 128 * 1024 * 1024;
const { ssh: SSH_PORT, channel: CHANNEL_PORT, agent: AGENT_PORT } = GUEST_LINK.guestPorts;

export interface LiveMicrovmOptions {
  readonly directory: string;
  readonly record: VmRecord;
  readonly slot: NetworkSlot;
  readonly process: VmProcess;
  readonly privateKey: string;
  readonly paused: boolean;
  /** Takes away everything the VM held; its process has ended. */
  readonly release: () => Promise<void>;
}

/** A VM whose process lives, with the connections into it. */
export class LiveMicrovm implements Microvm {
  readonly exited: Promise<{ reason: string }>;
  /** Settles (never rejects) when everything the VM held has been given back. */
  readonly released: Promise<void>;
  paused: boolean;
  readonly #options: LiveMicrovmOptions;
  readonly #ssh: SshChannel;
  readonly #channel: GuestChannel;
  readonly #agentLines: AgentLines;
  /** One change of the record, or of running and paused, at a time. */
  readonly #oneAtATime = new Mutex();
  #record: VmRecord;
  #destroying: Promise<void> | undefined;
  /** Aborts when the VM process is gone: nothing answers any more. */
  readonly #gone = new AbortController();
  #ended = false;
  readonly #markReleased: () => void;

  constructor(options: LiveMicrovmOptions) {
    this.#options = options;
    this.#record = options.record;
    this.paused = options.paused;
    const { host } = options.slot;
    this.#channel = new GuestChannel({ host, port: CHANNEL_PORT }, options.record.token);
    this.#agentLines = new AgentLines({ host, port: AGENT_PORT });
    this.#ssh = new SshChannel({
      host,
      port: SSH_PORT,
      privateKey: options.privateKey,
      hostKey: Buffer.from(options.record.hostKey, 'base64'),
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.released = promise;
    this.#markReleased = resolve;
    this.exited = options.process.exited.then(() => {
      this.#gone.abort(new MicrovmError('vm_gone', 'the sandbox has ended'));
      this.#closeChannels();
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
    return this.#options.slot.host;
  }
  get hostPort(): number {
    return SSH_PORT;
  }
  get labels(): Record<string, unknown> {
    return { ...this.#record.labels };
  }

  get slotIndex(): number {
    return this.#options.slot.index;
  }

  /** Opens the SSH connection, which every command then uses. */
  async connect(signal: AbortSignal): Promise<void> {
    await this.#ssh.connect(signal);
  }

  async label(data: Record<string, unknown>): Promise<void> {
    await this.#update({ labels: data });
  }

  async personalize({ hostname, env }: PersonalizeOptions, signal: AbortSignal): Promise<void> {
    if (hostname !== this.#record.hostname) await this.#channel.setName(hostname, signal);
    await this.#update({ hostname, env });
  }

  async exec(request: MicrovmExecRequest, signal: AbortSignal): Promise<MicrovmExecResult> {
    this.#assertMoves();
    const { env } = this.#record;
    return this.#whileAlive(() =>
      runCommand({ ssh: this.#ssh, channel: this.#channel, env }, request, signal),
    );
  }

  async upload(path: string, source: Readable, signal: AbortSignal): Promise<void> {
    this.#assertMoves();
    const { bavail, bsize } = await statfs(this.#options.directory);
    if (bavail * bsize < UPLOAD_ROOM) throw hostDiskFull();
    await this.#whileAlive(() => this.#channel.upload(path, source, signal));
  }

  async download(path: string, signal: AbortSignal): Promise<MicrovmDownload> {
    this.#assertMoves();
    return this.#whileAlive(() => this.#channel.download(path, signal));
  }

  async dialAgent(signal: AbortSignal): Promise<Socket> {
    this.#assertLives();
    const alive = AbortSignal.any([signal, this.#gone.signal]);
    return this.#whileAlive(() => this.#agentLines.dial(alive));
  }

  async pause(signal: AbortSignal): Promise<void> {
    await this.#oneAtATime.run(async () => {
      this.#assertLives();
      if (this.paused) return;
      await wrap('pause_failed', () => this.#options.process.pause(signal));
      this.paused = true;
    });
  }

  async resume(signal: AbortSignal): Promise<void> {
    await this.#oneAtATime.run(async () => {
      this.#assertLives();
      if (!this.paused) return;
      await wrap('resume_failed', () => this.#options.process.resume(signal));
      try {
        await wrap('resume_failed', () => this.#catchUp(signal));
      } catch (error) {
        if (this.#gone.signal.aborted) throw error;
        await this.#options.process.pause(AbortSignal.timeout(UPDATE_MS));
        throw error;
      }
      this.paused = false;
    });
  }

  async cpuSeconds(): Promise<number> {
    const { pid } = this.#record.process;
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
  }

  destroy(): Promise<void> {
    this.#destroying ??= this.#end().catch((error: unknown) => {
      // The next call tries again; until then the VM counts as ended.
      this.#ended = true;
      this.#destroying = undefined;
      throw error;
    });
    return this.#destroying;
  }

  /** Lets go of the VM without ending it. */
  detach(): void {
    this.#closeChannels();
    this.#options.process.detach();
  }

  async #end(): Promise<void> {
    this.#closeChannels();
    await this.#options.process.kill();
    // A record that is being written would come back after the directory is gone.
    await this.#oneAtATime.run(() => this.#options.release());
    this.#markReleased();
  }

  #closeChannels(): void {
    this.#ssh.close();
    this.#channel.close();
    this.#agentLines.close();
  }

  async #update(change: Partial<VmRecord>): Promise<void> {
    await this.#oneAtATime.run(async () => {
      this.#assertLives();
      const record = { ...this.#record, ...change };
      await writeVmRecord(this.#options.directory, record);
      this.#record = record;
    });
  }

  /** A guest that is not reached because its VM ended in the middle is a VM that is gone. */
  async #whileAlive<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof MicrovmError && error.code === 'guest_unreachable') this.#assertLives();
      throw error;
    }
  }

  /** Sets the guest's clock, which stood still. A guest that cannot even do that has not been resumed. */
  async #catchUp(signal: AbortSignal): Promise<void> {
    const alive = AbortSignal.any([signal, this.#gone.signal]);
    await this.#channel.setClock(withDeadline(alive, UPDATE_MS));
  }

  #assertMoves(): void {
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

async function wrap(code: 'pause_failed' | 'resume_failed', work: () => Promise<void>) {
  try {
    await work();
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    throw new MicrovmError(code, words, { cause: error });
  }
}
