import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PlacedAgent } from '@svc/contract';
import { createUnsentBudgets } from '@svc/service-kit/websocket';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { ManualClock } from '../../test/manual-clock.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { ONE_SHOT, placement } from '../../test/placement.ts';
import { ScriptedGuest } from '../../test/scripted-guest.ts';
import { silentLogger } from '../../test/silent-logger.ts';
import { adoptVms } from '../adoption/adopt.ts';
import { Agents } from '../agents/agents.ts';
import { linkBudgets } from '../agents/link/link-budgets.ts';
import { AgentLogs } from '../agents/logs/agent-logs.ts';
import { AGENT_TIMEOUTS } from '../agents/timeouts.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { DesktopRates } from '../sessions/clients/desktop-rates.ts';
import { JournalClaims } from '../sessions/journal/claims.ts';
import { SessionRegistry } from '../sessions/registry.ts';
import { viewRates } from '../sessions/view/view-rates.ts';
import { OneShotStarter } from './one-shot-starter.ts';

const NEVER = new AbortController().signal;
const clock = new ManualClock();
let guest: ScriptedGuest;
let directory: string;
let agents: Agents;
let core: CoreHarness;

beforeEach(async () => {
  guest = await ScriptedGuest.listen();
  directory = await mkdtemp(join(tmpdir(), 'svc-idle-'));
  start(new MemoryHost());
});

afterEach(async () => {
  for (const sandbox of core.registry.live()) await sandbox.end('deleted');
  await guest[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

/** Starts the parts of a worker that run one-shot agents, on the VMs of this host. */
function start(host: MemoryHost): void {
  const noSession = () => {
    throw new Error('this test starts no sessions');
  };
  agents = new Agents({
    oneShot: new OneShotStarter({
      registry: new SessionRegistry(),
      files: { directory, claims: new JournalClaims(), clock },
      agents: {
        api: { agentSecrets: async () => ({ llm: { api_key: 'k' }, env: {} }) },
        accounts: { register: () => () => undefined, update: () => true },
        egress: { request: () => Promise.reject(new Error('this test sends nothing')) },
        metrics: {
          linkLost: () => undefined,
          frameStored: () => undefined,
          viewShown: () => undefined,
        },
        logs: new AgentLogs(directory),
        delivery: { deliver: async () => true },
        metering: { wake: () => undefined },
        clock,
        logger: silentLogger,
        timeouts: { ...AGENT_TIMEOUTS, linkLostMs: 100 },
        desktops: new DesktopRates(),
        unsent: createUnsentBudgets(),
        links: linkBudgets(),
        views: viewRates(1),
        onFault: (error) => core.faults.push(error),
      },
    }),
    session: { prepare: noSession, adopt: noSession },
  });
  host.runGuest(guest);
  core = new CoreHarness(host, { clock, agents });
}

function create(changes: Partial<PlacedAgent> = {}): Promise<Sandbox> {
  const created_at = new Date(clock.wall()).toISOString();
  const { created_at: _now, ...request } = placement({ agent: { ...ONE_SHOT, ...changes } });
  return core.creator.create({ ...request, created_at }, NEVER);
}

/** Starts a successor of the worker, which adopts its VMs. */
async function restart(host: MemoryHost): Promise<void> {
  for (const sandbox of core.registry.live()) await sandbox.agent?.release(NEVER);
  const successor = new MemoryHost(host.live);
  start(successor);
  await adoptVms(
    {
      microvms: successor,
      registry: core.registry,
      pool: core.pool,
      capacity: core.capacity,
      images: () => successor.images(),
      clock,
      logger: silentLogger,
      onChange: () => undefined,
      onFault: (error) => core.faults.push(error),
      beforeDestroy: async () => undefined,
      mountWorkspace: () => undefined,
      adoptAgent: (sandbox, vm) => agents.adopt(sandbox, vm),
    },
    NEVER,
  );
}

async function passAfter(seconds: number): Promise<void> {
  clock.advance(seconds * 1000);
  core.reaper.pass();
  await expect.poll(() => core.registry.all().some((one) => one.isEnding)).toBe(false);
}

/** Expects the default idle timeout to begin now. */
async function expectIdleFromNow(sandbox: Sandbox): Promise<void> {
  await passAfter(59);
  expect(sandbox.state).toBe('running');
  await passAfter(1);
  expect(sandbox.record()).toMatchObject({ state: 'destroyed', end_reason: 'idle_timeout' });
}

it('a running one-shot agent is activity, and the idle timeout begins at its exit', async () => {
  const sandbox = await create();
  await passAfter(3000);
  expect(sandbox.record()).toMatchObject({ state: 'running', agent_status: 'running' });
  guest.exited(0);
  await expect.poll(() => sandbox.record().agent_status).toBe('completed');
  await expectIdleFromNow(sandbox);
});

it('an agent without a task is activity only while it runs one of a client', async () => {
  const sandbox = await create({ interactive: true });
  guest.frame({ type: 'task_started' });
  await guest.drained();
  await passAfter(3000);
  expect(sandbox.state).toBe('running');
  guest.frame({ type: 'task_completed', status: 'completed', result: '' });
  await guest.drained();
  await expectIdleFromNow(sandbox);
});

it('an agent that is lost is no activity', async () => {
  const sandbox = await create();
  guest.open = false;
  guest.cut();
  await expect.poll(() => sandbox.record().agent_status).toBe('failed');
  await expectIdleFromNow(sandbox);
});

it('an adopted agent is activity until it exits', async () => {
  const host = new MemoryHost();
  start(host);
  const { id } = await create();
  await restart(host);
  const adopted = core.registry.get(id);
  await passAfter(3000);
  expect(adopted.record()).toMatchObject({ state: 'running', agent_status: 'running' });
  guest.exited(1);
  await expect.poll(() => adopted.record().agent_status).toBe('failed');
  await expectIdleFromNow(adopted);
});

it('an adopted agent that has exited before is no activity', async () => {
  const host = new MemoryHost();
  start(host);
  const { id } = await create();
  guest.exited(0);
  await expect.poll(() => core.registry.get(id).record().agent_status).toBe('completed');
  await restart(host);
  await expectIdleFromNow(core.registry.get(id));
});
