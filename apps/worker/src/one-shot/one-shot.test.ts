import { describe, expect, it } from 'vitest';
import { Harness } from '../../test/harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { ONE_SHOT } from '../../test/placement.ts';
import { SessionLab, useSessionLab } from '../../test/session-lab.ts';

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

describe('a one-shot agent whose sandbox ends first', () => {
  it.each(['a DELETE', 'the death of its VM'])(
    'has failed without an exit code: %s',
    async (how) => {
      const { harness } = lab();
      const id = await harness.create({ agent: ONE_SHOT });
      if (how === 'a DELETE') await harness.json('DELETE', `/sandboxes/${id}`);
      else harness.host.vmOf(id).die();
      await expect.poll(() => recordOf(id)).toMatchObject({ state: 'destroyed' });
      expect(await recordOf(id)).toMatchObject({ agent_status: 'failed' });
      expect(await recordOf(id)).not.toHaveProperty('agent_exit_code');
    },
  );
});
