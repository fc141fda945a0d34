import { execFile } from 'node:child_process';
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import { promisify } from 'node:util';

const run = promisify(execFile);
const MIB = 1024 * 1024;

/** The machine on which the bench ran. */
export interface MachineDescription {
  readonly cpu: string | undefined;
  readonly cores: number;
  readonly memory_mib: number;
  /** Load average of the last minute. */
  readonly load: number;
  readonly kernel: string;
  readonly node: string;
  readonly qemu: string | undefined;
}

export async function describeMachine(): Promise<MachineDescription> {
  const { stdout } = await run('qemu-system-x86_64', ['--version']);
  return {
    cpu: cpus()[0]?.model,
    cores: availableParallelism(),
    memory_mib: Math.round(totalmem() / MIB),
    load: loadavg()[0] ?? 0,
    kernel: release(),
    node: process.version,
    qemu: /version (\S+)/.exec(stdout)?.[1],
  };
}
