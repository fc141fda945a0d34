import { createHash } from 'node:crypto';
import { cpus } from 'node:os';
import { chooseAccelerator } from './accelerator.ts';
import { Qemu } from './qemu.ts';
import { qemuVersion } from './version.ts';

/** What a snapshot depends on beside QEMU itself; raise it when the command line changes. */
const LAYOUT = 1;

export interface OpenQemuOptions {
  readonly kernel: string;
  readonly initrd: string;
  readonly verdictFile: string;
  readonly outsidePath: (inside: string) => string;
}

/** QEMU as it is installed, with the accelerator that works here. */
export async function openQemu(options: OpenQemuOptions, signal: AbortSignal): Promise<Qemu> {
  const version = await qemuVersion();
  const accelerator = await chooseAccelerator({ version, ...options }, signal);
  // Emulation is the same everywhere; under KVM the guest has seen the machine's own processor.
  const processor = accelerator.kind === 'kvm' ? (cpus()[0]?.model ?? '') : accelerator.cpu;
  const digest = createHash('sha256').update(`${LAYOUT} ${processor}`).digest('hex').slice(0, 8);
  return new Qemu({
    version,
    accelerator,
    snapshotKey: `qemu-${version.text}-${accelerator.kind}-${digest}`,
    outsidePath: options.outsidePath,
  });
}
