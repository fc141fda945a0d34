import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { SvcClient } from '@svc/sdk';
import type { Location } from '../../../arguments/location.ts';

type Side<Kind extends Location['kind']> = Extract<Location, { kind: Kind }>;

/** Copies a file of a sandbox to this machine, whole or not at all, or to standard output. */
export async function download(
  client: SvcClient,
  from: Side<'sandbox'>,
  to: Side<'local' | 'standard'>,
  signal: AbortSignal,
): Promise<void> {
  const { stream } = await client.sandboxes.files.readStream(from.id, from.path, { signal });
  if (to.kind === 'standard') {
    // Standard output stays open: it is the process's, not this copy's.
    await pipeline(stream, standardOutput(), { signal });
    return;
  }
  const target = (await isDirectory(to.path)) ? join(to.path, basename(from.path)) : to.path;
  const temporary = `${target}.${randomBytes(6).toString('hex')}.part`;
  try {
    await pipeline(stream, createWriteStream(temporary, { flags: 'wx' }), { signal });
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

function standardOutput(): Writable {
  return new Writable({
    write: (chunk, _encoding, done) => {
      process.stdout.write(chunk, done);
    },
  });
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (status) => status.isDirectory(),
    () => false,
  );
}
