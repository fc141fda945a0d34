import { mkdtemp, readdir, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { linkBudgets } from '../agents/link/link-budgets.ts';
import { systemClock, timestamp } from '../clock.ts';
import { JournalClaims } from './journal/claims.ts';
import { journalName } from './journal/directory.ts';
import { serializeFrame } from './journal/format.ts';
import { type FilesStart, SessionFiles } from './session-files.ts';

const OWNER = { session_id: 's', generation: 2, vm_id: 'vm_1' };

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-session-files-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** The files of journals below the directory that this process has open. */
async function openJournals(): Promise<string[]> {
  const links = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  );
  return links.filter((path) => path.startsWith(directory) && !path.endsWith('/outbox'));
}

test('the journal is closed and given back when the outbox cannot be opened', async () => {
  const options = { directory, claims: new JournalClaims(), clock: systemClock };
  const fault = () => {
    throw new Error('a fault');
  };
  const failing = { ...options, held: { left: 0, take: fault, give: fault } };
  const frame = serializeFrame({ type: 'text_delta', data: 'x' }, { seq: 1 }, timestamp(0));
  const start = {
    earlier: { frames: `${frame}\n` },
    numberer: 'n',
    numbers: { base_seq: 1, reserved_seq: 100 },
  } as unknown as FilesStart;
  await expect(SessionFiles.create(failing, OWNER, start)).rejects.toThrow('a fault');
  expect(await openJournals()).toEqual([]);
  expect(options.claims.isClaimed(journalName(OWNER))).toBe(false);
  const again = await SessionFiles.open({ ...options, held: linkBudgets().of('a') }, OWNER);
  expect(again.journal.lastSeq).toBe(1);
  await again.remove();
});
