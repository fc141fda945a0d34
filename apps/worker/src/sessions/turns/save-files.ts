import { pipeline } from 'node:stream/promises';
import { LIMITS, SAVED_ARCHIVE } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { LimitedStream } from '@svc/service-kit/streams';
import { uuidv7 } from 'uuidv7';
import type { SessionApi } from '../../control-plane/session-api.ts';
import { StallWatchdog } from '../../files/stall-watchdog.ts';

/** A transfer is aborted after this long without progress, in ms. */
const STALL_MS = 30_000;
/** Allows for a tar archive being somewhat larger than the files in it. */
const MAX_BYTES = LIMITS.sessionFilesBytes + 64 * 1024 * 1024;

export interface FilesOwner {
  readonly sessionId: string;
  readonly generation: number;
}

/**
 * Copies the agent's files from the guest to the control plane, and returns the id by which a turn refers to them.
 * @throws MicrovmError, ControlPlaneError; ServiceError `payload_too_large`
 */
export async function saveFiles(
  vm: Pick<Microvm, 'download'>,
  api: Pick<SessionApi, 'putFiles'>,
  owner: FilesOwner,
  signal: AbortSignal,
): Promise<string> {
  const id = uuidv7();
  const watch = new StallWatchdog(STALL_MS, () => new Error('the transfer of files has stalled'));
  const bounded = AbortSignal.any([signal, watch.signal]);
  const body = new LimitedStream({ maxBytes: MAX_BYTES, onProgress: () => watch.tick() });
  try {
    const { stream } = await vm.download(SAVED_ARCHIVE, bounded);
    const read = pipeline(stream, body, { signal: bounded });
    const { generation, sessionId } = owner;
    const written = api.putFiles(sessionId, { id, generation, body }, bounded);
    // The first failure is the cause; the other side fails only as a consequence.
    await Promise.all([read, written]);
    return id;
  } finally {
    watch.stop();
    body.destroy();
  }
}
