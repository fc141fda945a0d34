import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { MicrovmError } from '../../facade.ts';
import type { Confinement } from '../../jail/confinement.ts';
import type { Qmp } from './qmp.ts';
import { receiveInto } from './receive-into.ts';

/** Descriptor of a restored VM's process from which it reads the device state. */
export const STATE_FD = 3;
const SOCKET = 'migration';
const POLL_MS = 3;

/**
 * Has QEMU send the device state through a socket in the VM's directory, and writes it to `state`
 * there: every version can, and needs neither a program of its own nor a descriptor of ours. The memory
 * stays in its own file.
 */
export async function saveState(
  qmp: Qmp,
  confinement: Confinement,
  signal: AbortSignal,
): Promise<void> {
  await keepMemoryInPlace(qmp, signal);
  const receiver = await receiveInto(
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

/** Reads the device state from descriptor 3: only we can open it, and may close it at once. */
export async function loadState(qmp: Qmp, signal: AbortSignal): Promise<void> {
  await keepMemoryInPlace(qmp, signal);
  await qmp.execute('migrate-incoming', { uri: `fd:${STATE_FD}` }, signal);
  await completed(qmp, 'restoring', signal);
}

async function keepMemoryInPlace(qmp: Qmp, signal: AbortSignal): Promise<void> {
  const capabilities = [{ capability: 'x-ignore-shared', state: true }];
  await qmp.execute('migrate-set-capabilities', { capabilities }, signal);
}

async function completed(qmp: Qmp, what: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    const answer = (await qmp.execute('query-migrate', {}, signal)) as {
      status?: string;
      'error-desc'?: string;
    };
    if (answer.status === 'completed') return;
    if (answer.status === 'failed' || answer.status === 'cancelled') {
      throw new MicrovmError('boot_failed', `${what} failed: ${answer['error-desc'] ?? 'QEMU'}`);
    }
    await sleep(POLL_MS, undefined, { signal });
  }
}
