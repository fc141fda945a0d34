import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Confinement } from '../../jail/confinement.ts';
import { MicrovmError } from '../../microvm-error.ts';
import type { Qmp } from './qmp.ts';
import { receiveFile } from './receive-file.ts';

/** File descriptor from which the process of a restored VM reads the device state. */
export const STATE_FD = 3;
const SOCKET = 'migration';
const POLL_MS = 3;

/**
 * Receives the device state from QEMU through a socket in the VM's directory and writes it to `state` there. Every
 * version of QEMU supports this, and it needs no helper program. The memory stays in its own file.
 */
export async function saveState(
  qmp: Qmp,
  confinement: Confinement,
  signal: AbortSignal,
): Promise<void> {
  await keepMemoryInPlace(qmp, signal);
  const receiver = await receiveFile(
    join(confinement.socketDirectory, SOCKET),
    join(confinement.directory, 'state'),
  );
  try {
    const uri = `unix:${confinement.insideDirectory}/${SOCKET}`;
    await qmp.execute('migrate', { uri }, signal);
    await completed(qmp, 'freezing', signal);
    await receiver.received;
  } finally {
    receiver.close();
  }
}

/** Loads the device state from file descriptor 3, because the jailed process cannot open the file itself. */
export async function loadState(qmp: Qmp, signal: AbortSignal): Promise<void> {
  await keepMemoryInPlace(qmp, signal);
  await qmp.execute('migrate-incoming', { uri: `fd:${STATE_FD}` }, signal);
  await completed(qmp, 'restoring', signal);
}

async function keepMemoryInPlace(qmp: Qmp, signal: AbortSignal): Promise<void> {
  const capabilities = [{ capability: 'x-ignore-shared', state: true }];
  await qmp.execute('migrate-set-capabilities', { capabilities }, signal);
}

async function completed(qmp: Qmp, action: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    const answer = (await qmp.execute('query-migrate', {}, signal)) as {
      status?: string;
      'error-desc'?: string;
    };
    if (answer.status === 'completed') return;
    if (answer.status === 'failed' || answer.status === 'cancelled') {
      throw new MicrovmError('boot_failed', `${action} failed: ${answer['error-desc'] ?? 'QEMU'}`);
    }
    await sleep(POLL_MS, undefined, { signal });
  }
}
