import { setTimeout as sleep } from 'node:timers/promises';
import { withDeadline } from '@svc/service-kit/concurrency';
import { isAlive, type ProcessIdentity, signalProcess } from '@svc/service-kit/process';
import { availableBytes } from '../../disk-space.ts';
import type { Confinement } from '../../jail/confinement.ts';
import { MicrovmError } from '../../microvm-error.ts';
import type { VmProcess } from '../vmm.ts';
import { loadState, saveState } from './migration.ts';
import type { Qmp } from './qmp.ts';

const COMMAND_MS = 10_000;
const FREEZE_MS = 60_000;
const EXIT_MS = 10_000;
const EXIT_POLL_MS = 5;
/** Pause before another attempt to end a process. One that waits for a device ends only when the device answers. */
const END_RETRY_MS = 1_000;
/** Interval between attempts to continue a VM that is stopped because the disk is full. */
const STALL_RETRY_MS = 1_000;
/** Free disk without which it is not continued: the last space belongs to what keeps the machine's records. */
const CONTINUE_ABOVE_BYTES = 512 * 1024 * 1024;

export interface QemuProcessOptions {
  readonly confinement: Confinement;
  readonly identity: ProcessIdentity;
  readonly qmp: Qmp;
  /** Called when the process cannot be ended. That is tried again until it has ended. */
  readonly onFault: (error: unknown) => void;
}

/** A started or adopted QEMU process, controlled through its QMP socket. */
export class QemuProcess implements VmProcess {
  readonly identity: ProcessIdentity;
  readonly exited: Promise<void>;
  readonly #confinement: Confinement;
  readonly #qmp: Qmp;
  readonly #markExited: () => void;
  #detached = false;
  #closed = false;
  #paused = false;
  #stalled = false;

  constructor({ confinement, identity, qmp, onFault }: QemuProcessOptions) {
    this.#confinement = confinement;
    this.identity = identity;
    this.#qmp = qmp;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.exited = promise;
    this.#markExited = resolve;
    // The control socket closes when QEMU ends. A QEMU that closes it and keeps running cannot be controlled, so it is killed.
    void qmp.closed.then(async () => {
      this.#closed = true;
      if (this.#detached) return;
      await endEventually(identity, onFault);
      resolve();
    });
    qmp.onEvent = (event, { action, nospace }) => {
      if (event === 'BLOCK_IO_ERROR' && action === 'stop' && nospace === true) this.#stall();
    };
  }

  get stalled(): boolean {
    return this.#stalled;
  }

  async isPaused(signal: AbortSignal): Promise<boolean> {
    const status = await this.#status(signal);
    if (status === 'io-error') this.#stall();
    else this.#paused = status !== 'running';
    return this.#paused;
  }

  async pause(signal: AbortSignal): Promise<void> {
    await this.#execute('stop', {}, signal);
    this.#paused = true;
  }

  async resume(signal: AbortSignal): Promise<void> {
    await this.#execute('cont', {}, signal);
    this.#paused = false;
  }

  async growDisk(bytes: number, signal: AbortSignal): Promise<void> {
    await this.#execute('block_resize', { 'node-name': 'disk', size: bytes }, signal);
  }

  async freeze(signal: AbortSignal): Promise<void> {
    const deadline = withDeadline(signal, FREEZE_MS);
    await this.#execute('stop', {}, deadline);
    await saveState(this.#qmp, this.#confinement, deadline);
  }

  /** Loads the device state from descriptor 3 of the process and lets the VM run. */
  async load(signal: AbortSignal): Promise<void> {
    const deadline = withDeadline(signal, COMMAND_MS);
    await loadState(this.#qmp, deadline);
    await this.#execute('cont', {}, deadline);
  }

  async kill(): Promise<void> {
    await endProcess(this.identity);
    this.#qmp.close();
    this.#markExited();
  }

  detach(): void {
    this.#detached = true;
    this.#qmp.close();
  }

  #stall(): void {
    if (this.#stalled) return;
    this.#stalled = true;
    this.#waitForDiskSpace().catch(() => {
      // QEMU does not answer. If it has ended, `exited` settles. If not, its next failed write calls this again.
      this.#stalled = false;
    });
  }

  /** Makes the VM retry its write whenever there is space, until the write succeeds. */
  async #waitForDiskSpace(): Promise<void> {
    while (!this.#closed) {
      await sleep(STALL_RETRY_MS, undefined, { ref: false });
      if (this.#paused) continue;
      if ((await availableBytes(this.#confinement.directory)) < CONTINUE_ABOVE_BYTES) continue;
      const signal = AbortSignal.timeout(COMMAND_MS);
      if ((await this.#status(signal)) !== 'io-error') break;
      await this.#execute('cont', {}, signal);
    }
    this.#stalled = false;
  }

  async #status(signal: AbortSignal): Promise<string | undefined> {
    const answer = await this.#execute('query-status', {}, signal);
    return (answer as { status?: string }).status;
  }

  #execute(command: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal) {
    return this.#qmp.execute(command, args, withDeadline(signal, COMMAND_MS));
  }
}

/** Like `endProcess`, but reports a failure and tries again. Never rejects. */
async function endEventually(
  identity: ProcessIdentity,
  onFault: (error: unknown) => void,
): Promise<void> {
  for (;;) {
    try {
      await endProcess(identity);
      return;
    } catch (error) {
      onFault(error);
    }
    await sleep(END_RETRY_MS, undefined, { ref: false });
  }
}

/** Kills the process and waits until it has ended. */
async function endProcess(identity: ProcessIdentity): Promise<void> {
  const deadline = performance.now() + EXIT_MS;
  while (await isAlive(identity)) {
    if (performance.now() > deadline) {
      throw new MicrovmError('internal', `process ${identity.pid} does not end after SIGKILL`);
    }
    signalProcess(identity.pid, 'SIGKILL');
    await sleep(EXIT_POLL_MS);
  }
}
