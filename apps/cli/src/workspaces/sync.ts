import { constants } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { SvcClient } from '@svc/sdk';
import { Slots } from '@svc/service-kit/concurrency';
import type { WorkspaceLocation } from '../arguments/workspace.ts';
import { CliError } from '../output/errors.ts';
import { TransferBar } from '../output/transfer-bar.ts';
import { checkCount, listLocal, placeFor, removeLocal } from './local-files.ts';
import { planSync, type SyncedFile, type SyncPlan } from './plan.ts';
import { downloadFile, uploadFile } from './transfers.ts';

/** Files that are copied, or deleted, at the same time. */
const AT_ONCE = 4;

export interface SyncOptions {
  /** Makes the directory like the workspace instead. */
  readonly pull?: boolean;
  /** Deletes what only the target has. */
  readonly delete?: boolean;
  /** Changes nothing. */
  readonly dryRun?: boolean;
}

/** What was done, or in a dry run would be. Paths are relative to the directory. */
export interface SyncResult {
  readonly copied: readonly string[];
  readonly deleted: readonly string[];
  readonly unchanged: number;
  /** Local symbolic links and special files. */
  readonly skipped: readonly string[];
  readonly bytes: number;
}

/**
 * Makes the files under a prefix of a workspace like those in a directory, or the other way round. Repeating it after a
 * failure copies only what is missing.
 */
export async function syncWorkspace(
  client: SvcClient,
  root: string,
  location: WorkspaceLocation,
  options: SyncOptions,
  signal: AbortSignal,
): Promise<SyncResult> {
  const { id, path } = location;
  const prefix = path === '' || path.endsWith('/') ? path : `${path}/`;
  if (options.pull !== true) await checkDirectory(root);
  const local = await listLocal(root, signal);
  const remote = await listRemote(client, { id, path: prefix }, signal);
  const [source, target] = options.pull ? [remote, local.files] : [local.files, remote];
  const deletes = options.delete === true;
  if (deletes && source.size === 0) {
    throw new CliError(
      'nothing_to_sync',
      'there are no files to copy, and --delete would delete all',
      {
        next: 'check the names of the directory and the workspace',
      },
    );
  }
  const plan = planSync(source, target, { deletes, kept: local.skipped });
  if (options.dryRun !== true) {
    const title = options.pull ? 'downloading' : 'uploading';
    const bar = new TransferBar(title, plan.bytes);
    const at = (file: string) => ({ id, path: prefix + file });
    if (options.pull) {
      await carryOut(plan, signal, {
        remove: (file) => removeLocal(root, file),
        copy: (file, limit) => {
          const modified = new Date(remote.get(file)?.modifiedMs ?? 0);
          return pullFile(client, at(file), { root, file, modified, bar }, limit);
        },
      });
    } else {
      await carryOut(plan, signal, {
        remove: async (file, limit) => {
          await client.workspaces.delete(id, prefix + file, { signal: limit });
        },
        copy: (file, limit) => pushFile(client, at(file), join(root, file), bar, limit),
      });
    }
  }
  const { copies: copied, deletions: deleted, unchanged, bytes } = plan;
  return { copied, deleted, unchanged, skipped: local.skipped.toSorted(), bytes };
}

async function checkDirectory(root: string): Promise<void> {
  const found = await stat(root).catch((cause: unknown) => notADirectory(root, cause));
  if (!found.isDirectory()) notADirectory(root);
}

function notADirectory(root: string, cause?: unknown): never {
  throw new CliError('not_a_directory', `${root} is not a directory that you may read`, {
    next: 'name a directory; for one file, use `svc workspace put`',
    cause,
  });
}

async function listRemote(
  client: SvcClient,
  { id, path: prefix }: WorkspaceLocation,
  signal: AbortSignal,
): Promise<Map<string, SyncedFile>> {
  const files = new Map<string, SyncedFile>();
  for await (const { path, size, modified } of client.workspaces.files(id, prefix, { signal })) {
    files.set(path.slice(prefix.length), { size, modifiedMs: Date.parse(modified) });
    checkCount(files.size);
  }
  return files;
}

interface Steps {
  readonly remove: (file: string, signal: AbortSignal) => Promise<void>;
  readonly copy: (file: string, signal: AbortSignal) => Promise<void>;
}

/** The first failure ends all other steps, so that nothing runs on after this call. */
async function carryOut(plan: SyncPlan, signal: AbortSignal, { remove, copy }: Steps) {
  const slots = new Slots(AT_ONCE);
  const failed = new AbortController();
  const limit = AbortSignal.any([signal, failed.signal]);
  const each = async (files: readonly string[], step: Steps['copy']) => {
    const running = files.map((file) => slots.run(() => step(file, limit), limit));
    try {
      await Promise.all(running);
    } catch (error) {
      failed.abort(error);
      await Promise.allSettled(running);
      throw error;
    }
  };
  await each(plan.deletions, remove);
  await each(plan.copies, copy);
}

async function pushFile(
  client: SvcClient,
  target: WorkspaceLocation,
  source: string,
  bar: TransferBar,
  signal: AbortSignal,
): Promise<void> {
  const file = await open(source, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = await file.stat();
    await uploadFile(client, target, { file, size }, bar, signal);
  } finally {
    await file.close();
  }
}

interface PullTarget {
  readonly root: string;
  readonly file: string;
  readonly modified: Date;
  readonly bar: TransferBar;
}

async function pullFile(
  client: SvcClient,
  source: WorkspaceLocation,
  { root, file, modified, bar }: PullTarget,
  signal: AbortSignal,
): Promise<void> {
  const place = await placeFor(root, file);
  await downloadFile(client, source, place, { bar, modified }, signal);
}
