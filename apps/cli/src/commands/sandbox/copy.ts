import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { open, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { SvcClient } from '@svc/sdk';
import { Command } from 'commander';
import { type Location, parseLocation } from '../../arguments/location.ts';
import { withClient } from '../../connection/client.ts';
import { CliError } from '../../output/errors.ts';

type LocationOf<Kind extends Location['kind']> = Extract<Location, { kind: Kind }>;

const UPLOAD_CHUNK_BYTES = 1024 * 1024;

/** `svc sandbox cp`: copies one file into or out of a sandbox; `-` is standard input or output. */
export function copyCommand(): Command {
  return new Command('cp')
    .description('copy a file into or out of a sandbox: svc sandbox cp report.csv vm_…:/tmp/')
    .argument('<from>', 'local file, vm_…:/path, or -', parseLocation)
    .argument('<to>', 'local file, vm_…:/path, or -', parseLocation)
    .action((from: Location, to: Location) =>
      withClient(async (client, signal) => {
        if (from.kind !== 'sandbox' && to.kind === 'sandbox') {
          await upload(client, from, to, signal);
        } else if (from.kind === 'sandbox' && to.kind !== 'sandbox') {
          await download(client, from, to, signal);
        } else {
          throw new CliError('not_one_sandbox', 'exactly one side must be in a sandbox', {
            next: 'as in `svc sandbox cp report.csv vm_…:/tmp/` or `svc sandbox cp vm_…:/etc/os-release -`',
          });
        }
      }),
    );
}

/** A target that ends in `/` is a directory. */
async function upload(
  client: SvcClient,
  from: LocationOf<'local' | 'standard'>,
  to: LocationOf<'sandbox'>,
  signal: AbortSignal,
): Promise<void> {
  if (from.kind === 'standard') {
    await client.sandboxes.files.write(to.id, to.path, process.stdin, { signal });
    return;
  }
  const target = to.path.endsWith('/') ? to.path + basename(from.path) : to.path;
  const file = await open(from.path).catch((cause: unknown) => {
    throw new CliError('file_unreadable', `cannot read ${from.path}`, {
      next: 'check that the file exists and that you may read it',
      cause,
    });
  });
  try {
    const status = await file.stat();
    if (!status.isFile()) {
      throw new CliError('not_a_file', `${from.path} is not a file`, {
        next: `to copy a directory, pack it: tar -cz ${from.path} | svc sandbox cp - ${to.id}:/tmp/files.tgz`,
      });
    }
    const content = file.createReadStream({ highWaterMark: UPLOAD_CHUNK_BYTES, autoClose: false });
    await client.sandboxes.files.write(to.id, target, content, { signal });
  } finally {
    await file.close();
  }
}

/**
 * Writes to a temporary file first, so that an interrupted download leaves nothing behind. A symbolic link stays, and its
 * target is written; so is a device or a pipe.
 */
async function download(
  client: SvcClient,
  from: LocationOf<'sandbox'>,
  to: LocationOf<'local' | 'standard'>,
  signal: AbortSignal,
): Promise<void> {
  const { stream } = await client.sandboxes.files.readStream(from.id, from.path, { signal });
  if (to.kind === 'standard') {
    await pipeline(stream, standardOutput(), { signal });
    return;
  }
  const named = (await isDirectory(to.path)) ? join(to.path, basename(from.path)) : to.path;
  const existing = await stat(named).catch(() => undefined);
  if (existing !== undefined && !existing.isFile()) {
    await pipeline(stream, createWriteStream(named), { signal });
    return;
  }
  const target = existing === undefined ? named : await realpath(named);
  const temporary = `${target}.${randomBytes(6).toString('hex')}.part`;
  try {
    await pipeline(stream, createWriteStream(temporary, { flags: 'wx' }), { signal });
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** A stream into standard output that does not close it at its own end. */
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
