import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import type { SvcClient } from '@svc/sdk';
import type { Location } from '../../../arguments/location.ts';
import { CliError } from '../../../output/cli-error.ts';

type Side<Kind extends Location['kind']> = Extract<Location, { kind: Kind }>;

/** Copies a file of this machine, or standard input, into a sandbox. A target ending in `/` is a directory. */
export async function upload(
  client: SvcClient,
  from: Side<'local' | 'standard'>,
  to: Side<'sandbox'>,
  signal: AbortSignal,
): Promise<void> {
  if (from.kind === 'standard') {
    await client.sandboxes.files.write(to.id, to.path, process.stdin, { signal });
    return;
  }
  const target = to.path.endsWith('/') ? to.path + basename(from.path) : to.path;
  const file = await open(from.path).catch((cause: unknown) => {
    throw new CliError('file_unreadable', `cannot read ${from.path}`, {
      next: 'check that the file exists and may be read',
      cause,
    });
  });
  try {
    const status = await file.stat();
    if (!status.isFile()) {
      throw new CliError('not_a_file', `${from.path} is not a file`, {
        next: `pack a directory first: tar -cz ${from.path} | svc sandbox cp - ${to.id}:/tmp/files.tgz`,
      });
    }
    const content = file.createReadStream({ highWaterMark: 1024 * 1024, autoClose: false });
    await client.sandboxes.files.write(to.id, target, content, { signal });
  } finally {
    await file.close();
  }
}
