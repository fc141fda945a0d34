import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CoreHarness } from '../../../test/core-harness.ts';
import { MemoryHost } from '../../../test/memory-host.ts';
import { placement } from '../../../test/placement.ts';
import { AGENT_TIMEOUTS } from '../../agents/timeouts.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { Journal } from '../journal/journal.ts';
import { SessionMetrics } from '../metrics.ts';
import { SessionRegistry } from '../registry.ts';
import { TaskTrace } from './task-trace.ts';
import { TurnPipeline } from './turn-pipeline.ts';

let directory: string;
let sandbox: Sandbox;
let core: CoreHarness;
let closed: AbortController;
let journal: Journal;
const faults: unknown[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-pipeline-'));
  core = new CoreHarness(new MemoryHost());
  sandbox = await core.creator.create(placement(), new AbortController().signal);
  closed = new AbortController();
  const options = { directory: join(directory, 'j'), clock: core.clock };
  journal = await Journal.create(options, { frames: '', lastSeq: 0 });
});

afterEach(async () => {
  closed.abort();
  await journal.close();
  await rm(directory, { recursive: true, force: true });
  faults.length = 0;
});

function newPipeline(commitInBackground: () => void = () => undefined): TurnPipeline {
  return new TurnPipeline({
    placed: { kind: 'deictic', mode: 'session', wire_version: 2 },
    events: { exited: async () => undefined, lost: async () => undefined },
    vm: sandbox.assignedVm(),
    sandbox,
    link: { forward: async (_frame, ready) => (await ready) ?? true, save: () => undefined },
    journal,
    clients: {
      show: () => undefined,
      showPicture: () => undefined,
      caughtUp: async () => undefined,
    },
    turns: {
      takesState: true,
      commitTurn: async () => 'committed',
      commitInBackground,
      commitRest: async () => undefined,
    },
    timeouts: AGENT_TIMEOUTS,
    metrics: new SessionMetrics(new Registry(), new SessionRegistry()),
    trace: new TaskTrace({}),
    mayUseDesktop: () => true,
    onFault: (error) => faults.push(error),
    closed: closed.signal,
  });
}

const isIdle = () => sandbox.activity.idleSince !== undefined;
const started = { n: 1, frame: { type: 'task_started' } } as const;
const completed = {
  n: 2,
  frame: { type: 'task_completed', status: 'completed', result: '' },
} as const;

it('forwards no frame of a client to a sandbox that is held or about to end', async () => {
  const pipeline = newPipeline();
  const frame = { type: 'exec', command: 'x' } as const;
  expect(await pipeline.forward(frame)).toBeUndefined();
  await sandbox.power.hold();
  expect(await pipeline.forward(frame)).toBe('busy');
  await sandbox.power.release();
  expect(await pipeline.forward(frame)).toBeUndefined();
  await sandbox.end('deleted');
  expect(await pipeline.forward(frame)).toBe('busy');
  expect(faults).toEqual([]);
});

it('counts a running task as activity, and commits at its end', async () => {
  let ends = 0;
  const pipeline = newPipeline(() => {
    ends += 1;
  });
  await pipeline.store([started]);
  await pipeline.store([started]);
  expect(isIdle()).toBe(false);
  await pipeline.store([completed, completed]);
  expect(isIdle()).toBe(true);
  expect(ends).toBe(2);
});

it('counts a task as activity that was running when the worker restarted', async () => {
  await newPipeline().store([started]);
  await journal.close();
  closed.abort();
  closed = new AbortController();
  expect(isIdle()).toBe(true);
  journal = await Journal.open({ directory: join(directory, 'j'), clock: core.clock });
  const pipeline = newPipeline();
  expect(isIdle()).toBe(false);
  await pipeline.store([completed]);
  expect(isIdle()).toBe(true);
});

it('counts no task as activity that ended with an earlier sandbox of the session', async () => {
  await newPipeline().store([started]);
  const [stored] = await journal.read(1);
  await journal.close();
  closed.abort();
  closed = new AbortController();
  const options = { directory: join(directory, 'j'), clock: core.clock };
  const resumed = await Journal.create(options, { frames: `${stored?.text}\n`, lastSeq: 1 });
  await resumed.close();
  journal = await Journal.open(options);
  expect(journal.firstSeq).toBe(1);
  newPipeline();
  expect(isIdle()).toBe(true);
});

it('retries while the disk is full, and reports it once', async () => {
  const pipeline = newPipeline();
  const append = journal.append.bind(journal);
  let failures = 2;
  journal.append = async (...args) => {
    failures -= 1;
    if (failures >= 0) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    await append(...args);
  };
  await pipeline.storeEventually([started]);
  expect(journal.lastSeq).toBe(1);
  expect(faults).toHaveLength(1);
});

it('stops retrying on a full disk when the session closes', async () => {
  const pipeline = newPipeline();
  journal.append = async () => {
    closed.abort(new Error('over'));
    throw new Error('full');
  };
  await expect(pipeline.storeEventually([started])).rejects.toThrow('over');
});
