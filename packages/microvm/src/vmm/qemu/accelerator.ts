import { spawn } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { cpus, release } from 'node:os';
import type { Accelerator } from './command-line.ts';
import { type ProbeOutcome, readVerdict, writeVerdict } from './kvm-verdict.ts';
import { QEMU, type QemuVersion } from './version.ts';

/** The first output of the images' initial RAM disk. */
const MARK = 'svc-kernel-up';
/** Bounds the output that is kept: a broken guest could print without end. */
const OUTPUT_BYTES = 65_536;

export interface ProbeOptions {
  readonly version: QemuVersion;
  readonly kernel: string;
  readonly initrd: string;
  /** File that stores the result, so that each machine is probed only once. */
  readonly verdictFile: string;
  /** Most milliseconds that the guest of the probe has to boot. */
  readonly probeMs: number;
}

/**
 * Without what is fast on a real processor and slow on an emulated one: string instructions that copy single bytes, which
 * guests use for large copies and for clearing pages if they are said to be fast, and a fifth level of page tables.
 */
const EMULATED_CPU = 'max,erms=off,fsrm=off,la57=off';

/**
 * Chooses KVM where a guest really boots with it, otherwise emulation. Being able to open /dev/kvm is not enough: inside
 * some virtual machines a KVM guest never gets past its first instructions.
 */
export async function chooseAccelerator(
  options: ProbeOptions,
  signal: AbortSignal,
): Promise<Accelerator> {
  return (await kvmWorks(options, signal))
    ? { kind: 'kvm', cpu: 'host' }
    : { kind: 'tcg', cpu: EMULATED_CPU };
}

async function kvmWorks(options: ProbeOptions, signal: AbortSignal): Promise<boolean> {
  if (!(await canOpenKvm())) return false;
  const machine = `${release()} ${cpus()[0]?.model} QEMU ${options.version.text}`;
  const known = await readVerdict(options.verdictFile, machine);
  if (known !== undefined) return known;
  const outcome = await bootProbe(options, signal);
  await writeVerdict(options.verdictFile, machine, outcome);
  return outcome === 'booted';
}

async function canOpenKvm(): Promise<boolean> {
  return access('/dev/kvm', constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
}

/** Boots a kernel without a disk and waits for output from its first user program. */
async function bootProbe(
  { kernel, initrd, probeMs }: ProbeOptions,
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  // It dies with this process, also when that is killed: a guest that hangs under KVM keeps a processor busy.
  const child = spawn(
    'setpriv',
    [
      ['--pdeathsig', 'KILL', '--', QEMU],
      ['-nodefaults', '-no-user-config', '-display', 'none', '-M', 'microvm', '-accel', 'kvm'],
      ['-cpu', 'host', '-m', '256M', '-serial', 'stdio'],
      ['-kernel', kernel, '-initrd', initrd, '-append', 'console=ttyS0 quiet panic=-1'],
    ].flat(),
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  const { promise, resolve, reject } = Promise.withResolvers<ProbeOutcome>();
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-OUTPUT_BYTES);
    if (output.includes(MARK)) resolve('booted');
  });
  child.once('error', reject);
  child.once('exit', () => resolve('ended'));
  const timer = setTimeout(() => resolve('timed_out'), probeMs);
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
    child.kill('SIGKILL');
  }
}
