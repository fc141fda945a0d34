import { settledWithin, sleep } from '@svc/service-kit/concurrency';
import type { WorkerLogger } from '../logger.ts';
import type { SandboxRegistry } from '../sandbox/registry.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';

const MIB = 1024 * 1024;
const CHECK_MS = 1_000;
/** Below this much free disk, sandboxes end. Less than what a create needs, so that creates are refused first. */
const LOW_MIB = 512;
/** Below this, they end without being saved: what is left belongs to the ledger and the journals. */
const CRITICAL_MIB = 128;
/** A tenant who holds less than this did not fill the disk. */
const FILLS_DISK_BYTES = 512 * MIB;
/** For saving a sandbox that ends. Its guest may go on writing meanwhile. */
const SAVE_MS = 10_000;

export interface DiskPressureOptions {
  readonly registry: SandboxRegistry;
  readonly machine: { diskAvailableMib(): Promise<number> };
  readonly logger: WorkerLogger;
  readonly onFault: (error: unknown, action: string) => void;
}

/**
 * Ends sandboxes while the disk of the machine is nearly full, with reason `disk_pressure`: one at a time, each time the
 * largest of the tenant whose sandboxes hold most. Sandboxes may be promised more disk than the machine has, and the
 * ledger may be on the same disk.
 */
export class DiskPressure {
  readonly #options: DiskPressureOptions;

  constructor(options: DiskPressureOptions) {
    this.#options = options;
  }

  /** Checks every second until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(CHECK_MS, signal);
      if (signal.aborted) return;
      await this.pass().catch((error: unknown) =>
        this.#options.onFault(error, 'free disk of the machine'),
      );
    }
  }

  /** Ends at most one sandbox, and settles when it has ended. */
  async pass(): Promise<void> {
    const { machine, logger, onFault } = this.#options;
    const availableMib = await machine.diskAvailableMib();
    if (availableMib >= LOW_MIB) return;
    const largest = await this.#largest();
    if (largest === undefined) return;
    const { sandbox, bytes } = largest;
    logger.warn(
      { vm_id: sandbox.id, bytes, availableMib },
      'ending a sandbox: the disk is nearly full',
    );
    const ended = sandbox
      .end('disk_pressure')
      .catch((error: unknown) => onFault(error, `end ${sandbox.id}`));
    const isCritical = availableMib < CRITICAL_MIB;
    if (isCritical || !(await settledWithin(ended, SAVE_MS))) sandbox.hurryEnd();
    await ended;
  }

  /** The largest sandbox of the tenant whose sandboxes hold most of the disk, if they hold enough to matter. */
  async #largest(): Promise<HeldDisk | undefined> {
    const byTenant = new Map<string, HeldDisk[]>();
    for (const sandbox of this.#options.registry.live()) {
      if (sandbox.isEnding || !sandbox.hasRun || sandbox.isQuarantined) continue;
      const bytes = await sandbox.assignedVm().diskUsedBytes();
      const { tenant_id: tenant } = sandbox.assignment;
      byTenant.set(tenant, [...(byTenant.get(tenant) ?? []), { sandbox, bytes }]);
    }
    const [most] = [...byTenant.values()].sort((one, other) => total(other) - total(one));
    if (most === undefined || total(most) < FILLS_DISK_BYTES) return undefined;
    return most.sort((one, other) => other.bytes - one.bytes)[0];
  }
}

interface HeldDisk {
  readonly sandbox: Sandbox;
  /** Allocated on the machine's disk. */
  readonly bytes: number;
}

function total(held: readonly HeldDisk[]): number {
  return held.reduce((sum, { bytes }) => sum + bytes, 0);
}
