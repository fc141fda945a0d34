import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { release } from 'node:os';
import { chooseAccelerator } from './accelerator.ts';
import { Qemu } from './qemu.ts';
import { qemuVersion } from './version.ts';

/** Part of the snapshot key. Increment when the command line changes, because existing snapshots no longer fit. */
const COMMAND_LINE_VERSION = 1;

export interface OpenQemuOptions {
  readonly kernel: string;
  readonly initrd: string;
  readonly verdictFile: string;
  /** See `ProbeOptions`. */
  readonly probeMs: number;
  readonly outsidePath: (inside: string) => string;
  /** See `QemuProcessOptions`. */
  readonly onFault: (error: unknown) => void;
}

/** Opens the installed QEMU with an accelerator that works on this machine. */
export async function openQemu(options: OpenQemuOptions, signal: AbortSignal): Promise<Qemu> {
  const version = await qemuVersion();
  const accelerator = await chooseAccelerator({ version, ...options }, signal);
  // Emulation is the same on every machine. Under KVM the guest has seen the machine's own processor.
  const processor = accelerator.kind === 'kvm' ? await hostProcessor() : accelerator.cpu;
  const digest = createHash('sha256')
    .update(`${COMMAND_LINE_VERSION} ${processor}`)
    .digest('hex')
    .slice(0, 8);
  return new Qemu({
    version,
    accelerator,
    snapshotKey: `qemu-${version.text}-${accelerator.kind}-${digest}`,
    outsidePath: options.outsidePath,
    onFault: options.onFault,
  });
}

/** All that decides which processor a guest sees under KVM: model, features, microcode and the kernel's part in them. */
async function hostProcessor(): Promise<string> {
  const info = await readFile('/proc/cpuinfo', 'utf8');
  const fields = [
    'vendor_id',
    'cpu family',
    'model',
    'model name',
    'stepping',
    'microcode',
    'flags',
  ];
  const values = fields.map((name) => new RegExp(`^${name}\\s*: (.*)$`, 'm').exec(info)?.[1] ?? '');
  return [...values, release()].join('|');
}
