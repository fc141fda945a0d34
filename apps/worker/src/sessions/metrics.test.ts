import { ServiceError } from '@svc/contract';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Harness } from '../../test/harness.ts';
import { ScriptedGuest } from '../../test/scripted-guest.ts';
import { SessionSocket } from '../../test/session-socket.ts';

let guest: ScriptedGuest;
let harness: Harness;

beforeEach(async () => {
  guest = await ScriptedGuest.listen();
  harness = await Harness.start({
    guest,
    agentTimeouts: { saveMs: 1_000, linkLostMs: 300 },
  });
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
  await guest[Symbol.asyncDispose]();
});

const TASKS = 'svc_worker_session_tasks_total';
const FRAMES = 'svc_worker_session_frames_total';
const COMMITS = 'svc_worker_session_turn_commit_duration_seconds_count';

/** Waits until the metrics include all these lines. */
async function shows(...lines: string[]): Promise<void> {
  const shown = async () =>
    (await harness.metrics())
      .split('\n')
      .filter((line) => /^svc_worker_(agent|session)/.test(line) && !line.includes('_bucket'));
  await expect.poll(shown).toEqual(expect.arrayContaining(lines));
}

it('counts sessions, clients, frames, tasks and commits without naming any of them', async () => {
  await shows(
    'svc_worker_sessions{agent="deictic"} 0',
    'svc_worker_session_clients 0',
    `${TASKS}{agent="codex",status="failed"} 0`,
    `${COMMITS}{outcome="failed"} 0`,
    'svc_worker_agent_lines_lost_total 0',
  );
  const { session, vmId } = await harness.startSession();
  const client = await SessionSocket.open(harness, session);
  const other = await SessionSocket.open(harness, session);
  client.send({ type: 'task', prompt: 'dance', id: 't1' });
  await other.next(({ type }) => type === 'task_completed');
  guest.frame({ type: 'task_completed', status: 'interrupted', result: '', agent: 'a name' });
  await client.next(({ status }) => status === 'interrupted');
  await shows(
    'svc_worker_sessions{agent="deictic"} 1',
    'svc_worker_sessions{agent="codex"} 0',
    'svc_worker_session_clients 2',
    `${FRAMES}{type="task_started"} 1`,
    `${FRAMES}{type="text_delta"} 1`,
    `${FRAMES}{type="task_completed"} 2`,
    `${TASKS}{agent="deictic",status="completed"} 1`,
    `${TASKS}{agent="deictic",status="interrupted"} 1`,
    `${COMMITS}{outcome="committed"} 1`,
  );
  const text = await harness.metrics();
  for (const name of [session, vmId, 'usr_a', 't1', 'dance', 'a name']) {
    expect(text).not.toContain(`"${name}"`);
  }
  await other.close();
  await shows('svc_worker_session_clients 1');
  await harness.json('DELETE', `/sandboxes/${vmId}`);
  await shows('svc_worker_sessions{agent="deictic"} 0', 'svc_worker_session_clients 0');
});

it('counts a turn that could not be saved as failed', async () => {
  const { session } = await harness.startSession();
  const client = await SessionSocket.open(harness, session);
  harness.controlPlane.sessions.failure = new ServiceError('payload_too_large');
  client.send({ type: 'task', prompt: 'a' });
  await client.next(({ type }) => type === 'task_completed');
  await shows(
    `${COMMITS}{outcome="committed"} 0`,
    `${COMMITS}{outcome="failed"} 1`,
    `${COMMITS}{outcome="stale"} 0`,
    `${FRAMES}{type="error"} 1`,
  );
});

it('counts a turn of a superseded session as stale, and its task not at all', async () => {
  const { session } = await harness.startSession();
  const client = await SessionSocket.open(harness, session);
  harness.controlPlane.sessions.failure = new ServiceError('stale_generation');
  client.send({ type: 'task', prompt: 'a' });
  await client.closed;
  await shows(
    `${COMMITS}{outcome="committed"} 0`,
    `${COMMITS}{outcome="failed"} 0`,
    `${COMMITS}{outcome="stale"} 1`,
    `${TASKS}{agent="deictic",status="completed"} 0`,
  );
});

it('counts an agent that stays unreachable, but not one that reconnects', async () => {
  const { session } = await harness.startSession();
  const client = await SessionSocket.open(harness, session);
  guest.cut();
  await expect.poll(() => guest.attached).toBe(true);
  guest.frame({ type: 'text_delta', data: 'still here' });
  await client.next(({ data }) => data === 'still here');
  await shows('svc_worker_agent_lines_lost_total 0');
  guest.open = false;
  guest.cut();
  await client.closed;
  await shows('svc_worker_agent_lines_lost_total 1', 'svc_worker_sessions{agent="deictic"} 0');
});
