import { setTimeout as sleep } from 'node:timers/promises';
import { GUEST_LINK } from '@svc/contract';
import { withDeadline } from '@svc/service-kit/concurrency';
import { GuestChannel } from '../../guest/channel/guest-channel.ts';
import { CommandKiller } from '../../guest/commands/command-killer.ts';
import { runCommand } from '../../guest/commands/run-command.ts';
import { SshConnection } from '../../guest/commands/ssh-connection.ts';
import { createIdentity, type GuestIdentity } from '../../guest/identity.ts';
import { MicrovmError } from '../../microvm-error.ts';
import type { SshKey } from '../../resources/ssh-key.ts';
import { EPOCH } from './epoch.ts';

const BOOT_MS = 180_000;
/** Generous: a browser starts and draws its first pages on an emulated processor of a busy machine. */
const WARM_UP_MS = 900_000;
const RETRY_MS = 100;
/**
 * The guest's clock until a clone is given the real time. Processes that generate random numbers themselves would
 * generate the same ones in every clone. OpenSSL reseeds when its last seed is hours old, which a past time guarantees.
 */
const GUEST_TIME_MS = Number(EPOCH) * 1000;
/** Characters of output that an error message includes. */
const KEPT_OUTPUT = 6000;

/**
 * Waits for a booted guest, runs the warm-up commands in it under a temporary identity, and removes the identity.
 *
 * @param host address that reaches the guest from this machine
 * @throws MicrovmError `boot_failed` with the end of the output when a command fails
 */
export async function warmUp(
  host: string,
  sshKey: SshKey,
  commands: readonly string[],
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { ssh: sshPort, channel: channelPort } = GUEST_LINK.guestPorts;
  const identity = createIdentity('sandbox');
  const channel = new GuestChannel({ host, port: channelPort }, '', () => GUEST_TIME_MS);
  await identifyOnceUp(channel, identity, sshKey.publicKey, withDeadline(signal, BOOT_MS));
  const ssh = new SshConnection({
    host,
    port: sshPort,
    privateKey: sshKey.privateKey,
    hostKey: identity.hostKey.publicKey,
  });
  const killer = new CommandKiller(channel);
  const deadline = withDeadline(signal, WARM_UP_MS);
  const run = async (command: string) => {
    let output = '';
    const onOutput = (_stream: string, chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-KEPT_OUTPUT);
    };
    const request = { command, onOutput };
    const { exitCode } = await runCommand({ ssh, killer, env: {} }, request, deadline);
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
    onProgress('removing the identity');
    await run(REMOVE_IDENTITY);
  } finally {
    killer.close();
    ssh.close();
  }
}

/**
 * Removes the identity and restarts the guest's daemon, which then waits for the next identity. Waits until the agent
 * runtime, which has no identity, listens: it does so once its agent is loaded and warm.
 */
const REMOVE_IDENTITY = `
set -e
find /run/svc -type f -delete
rm -f /root/.bash_history
rm -rf /tmp/* /var/tmp/*
sync
# The brackets keep the pattern from matching the shell that runs it.
pkill -KILL -f 'svc/[g]uestd'
listens() { python3 -c "import socket; socket.create_connection(('127.0.0.1', $1), 1)"; }
until listens ${GUEST_LINK.guestPorts.channel}; do sleep 0.2; done
until ! [ -e /usr/lib/svc/agent-runtime.cjs ] || listens ${GUEST_LINK.guestPorts.agent}; do sleep 0.2; done
sync
`;

async function identifyOnceUp(
  channel: GuestChannel,
  identity: GuestIdentity,
  publicKey: string,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    try {
      await channel.identify(identity, publicKey, signal);
      return;
    } catch (error) {
      signal.throwIfAborted();
      // Packets are lost until the guest has an address.
      if (!(error instanceof Error)) throw error;
    }
    await sleep(RETRY_MS, undefined, { signal });
  }
}
