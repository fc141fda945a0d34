import { mkdir, mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { ControlPlaneError } from '../../control-plane/control-plane-transport.ts';
import { JournalClaims } from './claims.ts';
import { writeOwner } from './directory.ts';
import { Journal } from './journal.ts';
import { OrphanedJournals } from './orphaned-journals.ts';

const NEVER = new AbortController().signal;
let directory: string;
let orphaned: OrphanedJournals;
let answer: () => Promise<void>;
const claims = new JournalClaims();
const faults: unknown[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-orphaned-'));
  faults.length = 0;
  answer = async () => undefined;
  orphaned = new OrphanedJournals({
    directory,
    claims,
    api: { commitTurn: () => answer() },
    clock: systemClock,
    onFault: (error) => faults.push(error),
  });
});

afterEach(() => rm(directory, { recursive: true, force: true }));

async function createOrphan(name: string): Promise<string> {
  const path = join(directory, name);
  const journal = await Journal.create(
    { directory: path, clock: systemClock },
    { frames: '', lastSeq: 0 },
  );
  await journal.append([{ n: 1, frame: { type: 'text_delta', data: 'x' } }], () => undefined);
  await journal.close();
  await writeOwner(path, { session_id: name, generation: 1, vm_id: 'vm_1' });
  return path;
}

it.each([
  ['deletes', 'accepts it', async () => undefined, []],
  [
    'deletes',
    'has a later generation of the session',
    () => Promise.reject(new ControlPlaneError(409, 'stale_generation')),
    [],
  ],
  [
    'deletes',
    'has no room for its frames',
    () => Promise.reject(new ControlPlaneError(409, 'session_storage_full')),
    [],
  ],
  [
    'deletes',
    'does not know the session',
    () => Promise.reject(new ControlPlaneError(404, 'session_not_found')),
    [],
  ],
  [
    'keeps',
    'does not know the worker',
    () => Promise.reject(new ControlPlaneError(404, 'worker_not_registered')),
    ['s.1'],
  ],
  [
    'keeps',
    'refuses the token',
    () => Promise.reject(new ControlPlaneError(401, 'unauthorized')),
    ['s.1'],
  ],
])('%s a journal when the control plane %s', async (_what, _when, answers, stays) => {
  await createOrphan('s.1');
  answer = answers;
  await orphaned.pass(NEVER);
  expect(await readdir(directory)).toEqual(stays);
});

it('skips a claimed journal', async () => {
  await createOrphan('s.1');
  const release = claims.claim('s.1');
  await orphaned.pass(NEVER);
  expect(await readdir(directory)).toEqual(['s.1']);
  release();
  await orphaned.pass(NEVER);
  expect(await readdir(directory)).toEqual([]);
});

it('deletes a journal without an owner, and one that is too old', async () => {
  await mkdir(join(directory, 'ownerless.1'));
  const old = new Date(Date.now() - 25 * 3_600_000);
  await utimes(await createOrphan('old.1'), old, old);
  answer = () => Promise.reject(new Error('asked'));
  await orphaned.pass(NEVER);
  expect(await readdir(directory)).toEqual([]);
  expect(faults).toEqual([]);
});
