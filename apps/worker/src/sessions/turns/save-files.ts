import { pipeline } from 'node:stream/promises';
import { LIMITS, SAVED_ARCHIVE } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { uuidv7 } from 'uuidv7';
import type { SessionApi } from '../../control-plane/session-api.ts';
import { Meter } from '../../files/meter.ts';
import { ProgressWatch } from '../../files/progress.ts';

/** A guest or control plane in which nothing moves for this long is given up, in ms. */
const STALL_MS = 30_000;
/** A tar is somewhat larger than the files in it. */
const MAX_BYTES = LIMITS.sessionFilesBytes + 64 * 1024 * 1024;

export interface FilesOwner {
  readonly sessionId: string;
  readonly generation: number;
}

/**
 * Takes the agent's files from the guest to the control plane; answers the id under which a turn names them.
 * @throws MicrovmError, ControlPlaneError; ServiceError `payload_too_large`
 */
export async function saveFiles(
  vm: Microvm,
  api: SessionApi,
  owner: FilesOwner,
  signal: AbortSignal,
): Promise<string> {
  const id = uuidv7();
  const watch = new ProgressWatch(STALL_MS, () => new Error('the transfer of files stands still'));
  const bounded = AbortSignal.any([signal, watch.signal]);
  const body = new Meter({ maxBytes: MAX_BYTES, onProgress: () => watch.tick() });
  try {
    const { stream } = await vm.download(SAVED_ARCHIVE, bounded);
    const read = pipeline(stream, body, { signal: bounded });
    const { generation, sessionId } = owner;
    const written = api.putFiles(sessionId, { id, generation, body }, bounded);
    // Whichever fails first says why: the other then only breaks off.
    await Promise.all([read, written]);
    return id;
  } finally {
    watch.stop();
    body.destroy();
  }
}
