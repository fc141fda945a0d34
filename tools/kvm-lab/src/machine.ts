import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { withDeadline } from '@svc/service-kit/concurrency';
import { freePort } from '@svc/service-kit/testing';
import type { RootDisk } from './root-disk.ts';
import { runStep, type StepResult } from './run-step.ts';

const BOOT_MS = 300_000;
const RETRY_MS = 1000;
const MEMORY_MIB = 6144;

/**
 * An emulated machine with an AMD processor, KVM, systemd and cgroup v2. Its disks keep nothing. It has one processor,
 * because the kernel inside dies of a corrupted stack with two.
 */
export class Machine {
  readonly #qemu: ChildProcess;
  readonly #ssh: readonly string[];

  private constructor(qemu: ChildProcess, ssh: readonly string[]) {
    this.#qemu = qemu;
    this.#ssh = ssh;
  }

  /** Boots the machine and waits until a command runs in it. */
  static async boot(
    { disk, kernel, initrd }: RootDisk,
    checkoutDisk: string,
    work: string,
    signal: AbortSignal,
  ): Promise<Machine> {
    const port = await freePort('127.0.0.1');
    const drive = (file: string) => ['-drive', `file=${file},if=virtio,format=raw,snapshot=on`];
    const words = [
      ...['-accel', 'tcg,thread=multi,tb-size=1024', '-M', 'q35', '-cpu', 'max,la57=off'],
      ...['-smp', '1', '-m', String(MEMORY_MIB), '-nodefaults', '-display', 'none'],
      ...['-serial', `file:${join(work, 'console.log')}`, '-kernel', kernel, '-initrd', initrd],
      ...['-append', 'root=/dev/vda rw console=ttyS0 mitigations=off net.ifnames=0'],
      ...drive(disk),
      ...drive(checkoutDisk),
      ...['-netdev', `user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:${port}-:22`],
      ...['-device', 'virtio-net-pci,netdev=net', '-device', 'virtio-rng-pci'],
    ];
    const qemu = spawn(
      'setpriv',
      ['--pdeathsig', 'KILL', '--', 'qemu-system-x86_64', ...words],
      // Overlays of the disks are temporary files.
      { stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, TMPDIR: work } },
    );
    const ssh = [
      ...['-F', 'none', '-i', join(work, 'key'), '-p', String(port), '-o', 'BatchMode=yes'],
      ...['-o', 'LogLevel=ERROR', '-o', 'StrictHostKeyChecking=no'],
      ...['-o', 'UserKnownHostsFile=/dev/null', '-o', 'ConnectTimeout=10'],
      ...['-o', 'ServerAliveInterval=30', 'root@127.0.0.1'],
    ];
    const machine = new Machine(qemu, ssh);
    try {
      await machine.#untilUp(withDeadline(signal, BOOT_MS));
    } catch (error) {
      await machine.stop();
      throw error;
    }
    return machine;
  }

  /** The command that logs in. */
  get login(): string {
    return ['ssh', ...this.#ssh].join(' ');
  }

  /** Runs a shell script in the machine. */
  run(script: string, signal: AbortSignal): Promise<StepResult> {
    return runStep('ssh', [...this.#ssh, script], signal);
  }

  async stop(): Promise<void> {
    if (this.#qemu.exitCode !== null || this.#qemu.signalCode !== null) return;
    const exited = once(this.#qemu, 'exit');
    this.#qemu.kill('SIGKILL');
    await exited;
  }

  async #untilUp(signal: AbortSignal): Promise<void> {
    for (;;) {
      if (this.#qemu.exitCode !== null) throw new Error('QEMU ended while the machine booted');
      const { status } = await this.run('systemctl is-system-running --wait || true', signal);
      if (status === 0) return;
      await sleep(RETRY_MS, undefined, { signal });
    }
  }
}
