import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLogger } from '../../../test/silent-logger.ts';
import { AgentLogs } from '../../agents/logs/agent-logs.ts';
import { AGENT_TIMEOUTS } from '../../agents/timeouts.ts';
import { systemClock } from '../../clock.ts';
import { ControlPlaneError } from '../../control-plane/control-plane-transport.ts';
import type { SessionApi } from '../../control-plane/session-api.ts';
import { SessionMetrics } from '../metrics.ts';
import { SessionRegistry } from '../registry.ts';
import { filesIn } from './directory.ts';
import { Journal } from './journal.ts';
import { OrphanedJournals } from './orphaned-journals.ts';

const NEVER = new AbortController().signal;
let directory: string;
let left: OrphanedJournals;
let answer: () => Promise<void>;
const sessions = new SessionRegistry();
const faults: unknown[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-left-'));
  faults.length = 0;
  answer = async () => undefined;
  left = new OrphanedJournals({
    api: { commitTurn: () => answer() } as unknown as SessionApi,
    accounts: { register: () => () => undefined, update: () => false },
    egress: { request: () => Promise.reject(new Error('not here')) },
    sessions,
    metrics: new SessionMetrics(new Registry(), sessions),
    logs: new AgentLogs(directory),
    clock: systemClock,
    logger: silentLogger,
    times: AGENT_TIMEOUTS,
    directory,
    onFault: (error) => faults.push(error),
  });
});

afterEach(() => rm(directory, { recursive: true, force: true }));

async function leave(name: string): Promise<string> {
  const path = join(directory, name);
  const journal = await Journal.create(
    { directory: path, clock: systemClock },
    { frames: '', lastSeq: 0 },
  );
  await journal.append([{ n: 1, frame: { type: 'text_delta', data: 'x' } }]);
  await journal.close();
  const owner = { session_id: name, generation: 1, vm_id: 'vm_1' };
  await writeFile(filesIn(path).owner, JSON.stringify(owner));
  return path;
}

it.each([
  ['took it', async () => undefined, []],
  ['refuses it for good', () => Promise.reject(new ControlPlaneError(409, 'stale_generation')), []],
  [
    'does not know the session',
    () => Promise.reject(new ControlPlaneError(404, 'session_not_found')),
    [],
  ],
  [
    'does not know the worker',
    () => Promise.reject(new ControlPlaneError(404, 'worker_not_registered')),
    ['s.1'],
  ],
  ['refuses the token', () => Promise.reject(new ControlPlaneError(401, 'unauthorized')), ['s.1']],
])('when the control plane %s', async (_what, answers, stays) => {
  await leave('s.1');
  answer = answers;
  await left.pass(NEVER);
  expect(await readdir(directory)).toEqual(stays);
});

it('one that somebody works with is let alone', async () => {
  await leave('s.1');
  const unclaim = sessions.claim('s.1');
  await left.pass(NEVER);
  expect(await readdir(directory)).toEqual(['s.1']);
  unclaim();
  await left.pass(NEVER);
  expect(await readdir(directory)).toEqual([]);
});

it('one that is nobody’s, or too old, is deleted', async () => {
  await mkdir(join(directory, 'nobody.1'));
  const old = new Date(Date.now() - 25 * 3_600_000);
  await utimes(await leave('old.1'), old, old);
  answer = () => Promise.reject(new Error('asked'));
  await left.pass(NEVER);
  expect(await readdir(directory)).toEqual([]);
  expect(faults).toEqual([]);
});
