import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { placement } from '../../test/placement.ts';
import { AGENT_TIMEOUTS } from '../agents/timeouts.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { FrameStream } from './frame-stream.ts';
import { Journal } from './journal/journal.ts';
import { SessionMetrics } from './metrics.ts';
import { SessionRegistry } from './registry.ts';

let directory: string;
let sandbox: Sandbox;
let core: CoreHarness;
let closed: AbortController;
let journal: Journal;
const faults: unknown[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-frames-'));
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

function stream(shown: () => void = () => undefined): FrameStream {
  return new FrameStream({
    agent: 'deictic',
    sandbox,
    journal,
    services: {
      clock: core.clock,
      times: AGENT_TIMEOUTS,
      metrics: new SessionMetrics(new Registry(), new SessionRegistry()),
      onFault: (error) => faults.push(error),
    },
    closed: closed.signal,
    forward: async () => true,
    onTaskShown: shown,
  });
}

const isIdle = () => sandbox.activity.idleSince !== undefined;
const started = { n: 1, frame: { type: 'task_started' } } as const;
const completed = {
  n: 2,
  frame: { type: 'task_completed', status: 'completed', result: '' },
} as const;

it('a running task is activity, from its start to its end', async () => {
  let ends = 0;
  const frames = stream(() => {
    ends += 1;
  });
  await frames.keep([started]);
  await frames.keep([started]);
  expect(isIdle()).toBe(false);
  await frames.keep([completed, completed]);
  expect(isIdle()).toBe(true);
  expect(ends).toBe(2);
});

it('a task that a restarted worker finds running is activity too', async () => {
  await stream().keep([started]);
  await journal.close();
  closed.abort();
  closed = new AbortController();
  expect(isIdle()).toBe(true);
  journal = await Journal.open({ directory: join(directory, 'j'), clock: core.clock });
  const frames = stream();
  expect(isIdle()).toBe(false);
  await frames.keep([completed]);
  expect(isIdle()).toBe(true);
});

it('a disk that is full is waited out, and said once', async () => {
  const frames = stream();
  const append = journal.append.bind(journal);
  let failures = 2;
  journal.append = async (some) => {
    failures -= 1;
    if (failures >= 0) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    await append(some);
  };
  await frames.keepAtLast([started]);
  expect(journal.lastSeq).toBe(1);
  expect(faults).toHaveLength(1);
});

it('a disk that stays full is waited for as long as the session lasts', async () => {
  const frames = stream();
  journal.append = async () => {
    closed.abort(new Error('over'));
    throw new Error('full');
  };
  await expect(frames.keepAtLast([started])).rejects.toThrow('over');
});
