import { chmod, chown, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { GUEST_LINK } from '@svc/contract';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { Environment } from '../environment.ts';
import { MicrovmError } from '../facade.ts';
import { GuestChannel } from '../guest/guest-channel.ts';
import { createIdentity } from '../guest/identity.ts';
import { runCommand } from '../guest/run-command.ts';
import { SshChannel } from '../guest/ssh-channel.ts';
import { giveWay } from '../jail/give-way.ts';
import { openEnvironment } from '../open-environment.ts';
import { resourceLimits } from '../vm/resource-limits.ts';
import type { VmShape } from '../vmm/vmm.ts';
import { withBuildLock } from './build-lock.ts';
import type { BuildImageOptions } from './build-options.ts';
import { EPOCH } from './build-rootfs.ts';
import type { Image } from './image.ts';
import { snapshotDirectory, snapshotExists } from './snapshot-directory.ts';

const BOOT_MS = 180_000;
const WARM_UP_MS = 300_000;
/**
 * The time it is in the guest until a clone is told another. A process that draws random numbers for itself would draw
 * the same in every clone; OpenSSL takes a new seed when its last is hours old, which then it always is.
 */
const LONG_AGO_MS = Number(EPOCH) * 1000;
const KEPT_OUTPUT = 2000;
const silentLogger = { info: () => undefined, warn: () => undefined, error: () => undefined };

export interface BuildSnapshotOptions extends Omit<BuildImageOptions, 'template'> {
  /** Gives way to everything else on the machine. Default false. */
  readonly background?: boolean;
}

/**
 * Boots the image once in the given shape, warms it up, and freezes it, unless that has been done on
 * this machine. It runs in an instance of its own, as confined as any sandbox.
 */
export async function buildSnapshot(
  image: Image,
  shape: VmShape,
  options: BuildSnapshotOptions,
  signal: AbortSignal,
): Promise<void> {
  const { imageDir } = options;
  const builds = join(imageDir, '.build');
  await mkdir(builds, { recursive: true });
  const lockOptions = { ...options, template: image.template };
  const lockName = `${image.id}-${shape.vcpu}x${shape.memoryMib}`;
  await withBuildLock(lockOptions, lockName, signal, async () => {
    const work = await mkdtemp(join(builds, `snapshot-${lockName}-`));
    try {
      const environment = await openEnvironment(
        { dataDir: work, imageDir, logger: silentLogger, slotStock: 1 },
        signal,
      );
      try {
        const { snapshotKey } = environment.vmm;
        if (await snapshotExists(image, snapshotKey, shape)) return;
        options.onProgress('booting it once, to freeze it');
        const frozen = await bootAndFreeze(environment, image, shape, options, signal);
        const target = snapshotDirectory(image, snapshotKey, shape);
        await mkdir(dirname(target), { recursive: true });
        await rename(frozen, target);
      } finally {
        await environment.close({ keep: [] });
      }
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  });
}

/** Returns the directory that holds `memory`, `state` and `disk.qcow2`, and nothing else. */
async function bootAndFreeze(
  { slots, jail, vmm, sshKey }: Environment,
  image: Image,
  shape: VmShape,
  { onProgress, background = false }: BuildSnapshotOptions,
  signal: AbortSignal,
): Promise<string> {
  const id = 'm_build';
  const slot = await slots.take(signal);
  try {
    await jail.prepare(id, slot);
    const confinement = jail.confine(id, slot, resourceLimits(shape));
    const vm = await vmm.boot(
      {
        ...shape,
        confinement,
        kernel: jail.imagePath(image.kernelPath),
        initrd: jail.imagePath(image.initrdPath),
        rootfs: jail.imagePath(image.rootfsPath),
      },
      signal,
    );
    try {
      await confinement.limit(vm.identity.pid);
      if (background) await giveWay(vm.identity.pid);
      await warmUp(slot.host, sshKey, image.warmUp, onProgress, signal);
      onProgress('freezing it');
      await vm.freeze(signal);
    } finally {
      await vm.kill();
    }
    const { directory } = confinement;
    for (const name of ['qmp', 'migration']) await rm(join(directory, name), { force: true });
    for (const name of ['memory', 'state', 'disk.qcow2']) {
      await chown(join(directory, name), 0, 0);
      await chmod(join(directory, name), 0o644);
    }
    await chown(directory, 0, 0);
    await chmod(directory, 0o755);
    return directory;
  } finally {
    await slots.release(slot);
  }
}

/** Runs the warm-up commands under an identity that is then taken away again. */
async function warmUp(
  host: string,
  sshKey: Environment['sshKey'],
  commands: readonly string[],
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { ssh: sshPort, channel: channelPort } = GUEST_LINK.guestPorts;
  const identity = createIdentity('sandbox');
  const channel = new GuestChannel({ host, port: channelPort }, '', () => LONG_AGO_MS);
  await waitForGuest(channel, identity, sshKey.publicKey, withDeadline(signal, BOOT_MS));
  const ssh = new SshChannel({
    host,
    port: sshPort,
    privateKey: sshKey.privateKey,
    hostKey: identity.hostKey.publicKey,
  });
  const deadline = withDeadline(signal, WARM_UP_MS);
  const run = async (command: string) => {
    let output = '';
    const onOutput = (_stream: string, chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-KEPT_OUTPUT);
    };
    const { exitCode } = await runCommand(
      { ssh, channel, env: {} },
      { command, onOutput },
      deadline,
    );
    if (exitCode === 0) return;
    throw new MicrovmError(
      'boot_failed',
      `the image cannot run ${command}: status ${exitCode}\n${output}`,
    );
  };
  try {
    for (const command of commands) {
      onProgress(`warming up: ${command}`);
      await run(command);
    }
    onProgress('forgetting the build');
    await run(FORGET);
  } finally {
    ssh.close();
  }
}

/**
 * Undoes the identity; the daemon, started anew without one, waits for the next. The agent runtime, which has been
 * told none, listens once its agent is loaded and warm.
 */
const FORGET = `
set -e
find /run/svc -type f -delete
rm -f /root/.bash_history
rm -rf /tmp/* /var/tmp/*
sync
# Written so that it does not match the shell that runs it.
pkill -KILL -f 'svc/[g]uestd'
listens() { python3 -c "import socket; socket.create_connection(('127.0.0.1', $1), 1)"; }
until listens ${GUEST_LINK.guestPorts.channel}; do sleep 0.2; done
until ! [ -e /usr/lib/svc/agent-runtime.cjs ] || listens ${GUEST_LINK.guestPorts.agent}; do sleep 0.2; done
sync
`;

async function waitForGuest(
  channel: GuestChannel,
  identity: ReturnType<typeof createIdentity>,
  publicKey: string,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    try {
      await channel.identify(identity, publicKey, signal);
      return;
    } catch (error) {
      signal.throwIfAborted();
      // Until the guest has an address, what it is sent gets lost.
      if (!(error instanceof Error)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
