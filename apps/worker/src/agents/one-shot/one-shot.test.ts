import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Harness } from '../../../test/harness.ts';
import { MemoryHost } from '../../../test/memory-host.ts';
import { ONE_SHOT } from '../../../test/placement.ts';
import { SessionLab, useSessionLab } from '../../../test/session-lab.ts';
import { AgentLogs } from '../logs/agent-logs.ts';

const LOG = '/var/log/svc/agent.log';

const lab = useSessionLab({ agentTimeouts: { saveMs: 1_000 } });

async function recordOf(id: string, from = lab().harness) {
  return (await from.json('GET', `/sandboxes/${id}`)).body;
}

describe('a one-shot agent', () => {
  it('receives its task and its environment without the gateway’s variables', async () => {
    const id = await lab().harness.create({
      agent: ONE_SHOT,
      env_vars: { A: '1', LLM_BASE_URL: 'https://x' },
    });
    expect(lab().guest.setup).toMatchObject({
      mode: 'one_shot',
      agent: 'codex',
      task: 'do it',
      resumeId: 'r1',
      gateway: 'http://172.30.0.1:7200/openai',
      env: { A: '1', GREETING: 'hello' },
    });
    expect(lab().guest.setup?.env).not.toHaveProperty('LLM_BASE_URL');
    expect(await recordOf(id)).toMatchObject({ agent_status: 'running' });
    expect(await recordOf(id)).not.toHaveProperty('agent_exit_code');
  });

  it.each([
    [0, 'completed'],
    [3, 'failed'],
  ])('that exits with %i has %s, for a restarted worker too', async (code, status) => {
    const { guest, harness } = lab();
    const id = await harness.create({ agent: ONE_SHOT });
    guest.frame({ type: 'text_delta', data: 'no client sees this' });
    guest.exited(code);
    guest.exited(99);
    const ended = { agent_status: status, agent_exit_code: code, state: 'running' };
    await expect.poll(() => recordOf(id)).toMatchObject(ended);
    await guest.drained();
    await expect
      .poll(() => harness.controlPlane.events.at(-1))
      .toMatchObject({
        vm_id: id,
        agent_exit_code: code,
      });
    await using second = await Harness.start({ host: new MemoryHost(harness.host.live) });
    expect(await recordOf(id, second)).toMatchObject(ended);
  });

  it('that becomes unreachable has failed', async () => {
    await using quick = await SessionLab.start({ agentTimeouts: { linkLostMs: 300 } });
    const id = await quick.harness.create({ agent: ONE_SHOT });
    quick.guest.open = false;
    quick.guest.cut();
    await expect
      .poll(() => recordOf(id, quick.harness))
      .toMatchObject({
        agent_status: 'failed',
        agent_exit_code: 137,
        state: 'running',
      });
  });
});

describe('the log of a one-shot agent', () => {
  const logs = (id: string) => lab().harness.json('GET', `/sandboxes/${id}/logs?lines=1`);

  it('can be read while the sandbox runs, while it is paused, and after it has ended', async () => {
    const { harness } = lab();
    const id = await harness.create({ agent: ONE_SHOT });
    expect(await logs(id)).toMatchObject({ body: { content: '', total_bytes: 0 } });
    const vm = harness.host.vmOf(id);
    vm.files.set(LOG, Buffer.from('one\ntwo\n'));
    expect(await logs(id)).toEqual({
      status: 200,
      body: { content: 'two\n', truncated: true, total_bytes: 8 },
    });
    vm.files.set(LOG, Buffer.from('one\ntwo\nthree\n'));
    await harness.json('POST', `/sandboxes/${id}/pause`);
    expect(await logs(id)).toMatchObject({ body: { content: 'three\n' } });
    expect(vm.paused).toBe(true);
    await harness.json('POST', `/sandboxes/${id}/resume`);
    vm.files.set(LOG, Buffer.from('one\ntwo\nthree\nfour\n'));
    await harness.json('DELETE', `/sandboxes/${id}`);
    expect(await logs(id)).toMatchObject({ body: { content: 'four\n', total_bytes: 19 } });
  });

  it('is copied before the exit is reported, so that it outlives the VM', async () => {
    const id = await lab().harness.create({ agent: ONE_SHOT });
    const vm = lab().harness.host.vmOf(id);
    vm.files.set(LOG, Buffer.from('the end\n'));
    lab().guest.exited(1);
    await expect.poll(() => recordOf(id)).toMatchObject({ agent_exit_code: 1 });
    vm.die();
    await expect.poll(() => recordOf(id)).toMatchObject({ state: 'destroyed' });
    expect(await logs(id)).toMatchObject({ body: { content: 'the end\n' } });
  });

  it('is not copied when it is larger than 32 MiB', async () => {
    const { harness } = lab();
    const id = await harness.create({ agent: ONE_SHOT });
    harness.host.vmOf(id).files.set(LOG, Buffer.alloc(40 * 1024 * 1024, 'x'));
    expect(await logs(id)).toMatchObject({ status: 200, body: { total_bytes: 0 } });
    const directory = join(harness.dataDir, 'logs', 'agents');
    expect(await readdir(directory)).toEqual([]);
  });

  it('is deleted once it is old, unless its sandbox still has a record', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'svc-logs-'));
    const copies = new AgentLogs(directory);
    for (const id of ['vm_old', 'vm_known', 'vm_new']) {
      await writeFile(join(directory, `${id}.stderr.log`), 'x');
    }
    const old = new Date(Date.now() - 901_000);
    for (const id of ['vm_old', 'vm_known']) {
      await utimes(join(directory, `${id}.stderr.log`), old, old);
    }
    await copies.sweep(Date.now(), (id) => id === 'vm_known');
    expect((await readdir(directory)).sort()).toEqual(['vm_known.stderr.log', 'vm_new.stderr.log']);
    await rm(directory, { recursive: true });
  });
});
