import type { Readable } from 'node:stream';
import { type FilesManifest, LIMITS, SAVED_ARCHIVE, ServiceError } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { uuidv7 } from 'uuidv7';
import type { ChunkStore } from '../../chunks/chunk-store.ts';
import { StallWatchdog } from '../../files/stall-watchdog.ts';

/** A transfer is aborted when the guest sends nothing for this long, in ms. */
const STALL_MS = 30_000;

/** Saved files, as a turn names them. */
export interface SavedFiles {
  readonly id: string;
  readonly manifest: FilesManifest;
}

/**
 * Saves the agent's files from the guest in the object store, for the commit of a turn.
 * @throws MicrovmError, ControlPlaneError, ObjectTransferError; ServiceError `payload_too_large`
 */
export async function saveFiles(
  vm: Pick<Microvm, 'download'>,
  store: Pick<ChunkStore, 'save'>,
  signal: AbortSignal,
): Promise<SavedFiles> {
  return { id: uuidv7(), manifest: await store.save((limit) => readArchive(vm, limit), signal) };
}

async function* readArchive(
  vm: Pick<Microvm, 'download'>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const watch = new StallWatchdog(STALL_MS, () => new Error('the transfer of files has stalled'));
  let stream: Readable | undefined;
  try {
    const bounded = AbortSignal.any([signal, watch.signal]);
    ({ stream } = await vm.download(SAVED_ARCHIVE, bounded));
    let size = 0;
    for await (const bytes of stream as AsyncIterable<Buffer>) {
      size += bytes.length;
      if (size > LIMITS.sessionFilesBytes) throw new ServiceError('payload_too_large');
      // The guest waits while these bytes are stored.
      watch.pause();
      yield bytes;
      watch.resume();
    }
  } finally {
    watch.stop();
    stream?.destroy();
  }
}
