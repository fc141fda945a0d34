import { AGENTS } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { MODELS, useSessionWorld } from './world.ts';

const world = useSessionWorld({
  rules: [
    { when: { user: 'fail' }, reply: { status: 401 } },
    { when: { user: 'greet (\\w+)' }, reply: { text: 'Good day, $1.' } },
  ],
});

/** A one-shot agent, and its sandbox's record once it has exited. */
async function runOnce(agent: (typeof AGENTS)[number], task: string) {
  const { account, models, key } = world();
  const { vm_id } = await account.client.sandboxes.create({
    template: 'standard',
    agent,
    llm_key: key,
    model: MODELS[agent].model,
    task,
    env_vars: { LLM_BASE_URL: models.url },
    idle_timeout_seconds: 600,
  });
  const record = await until(
    'the agent has exited',
    async () => {
      const now = await account.client.sandboxes.get(vm_id);
      return now.agent_exit_code !== undefined && now;
    },
    { deadlineMs: 400_000 },
  );
  return { vmId: vm_id, record };
}

describe.each([...AGENTS])('%s', (agent) => {
  test('runs its task and exits', { timeout: 600_000 }, async () => {
    const { vmId, record } = await runOnce(agent, 'Please greet Ada');
    expect(record).toMatchObject({
      agent_status: 'completed',
      agent_exit_code: 0,
      state: 'running',
    });
    const { account, models, key } = world();
    const { content } = await account.client.sandboxes.logs(vmId, { lines: 100 });
    expect(content).toContain('Good day, Ada.');
    const asked = models.requests.filter(({ body }) => JSON.stringify(body).includes('greet Ada'));
    expect(asked.length).toBeGreaterThan(0);
    expect(JSON.stringify(asked[0]?.headers)).toContain(key);
    await account.client.sandboxes.delete(vmId);
  });
});

describe('the log of an agent', () => {
  test('of one that failed tells why, by lines and by bytes', { timeout: 600_000 }, async () => {
    const { vmId, record } = await runOnce('deictic', 'Please fail');
    expect(record).toMatchObject({ agent_status: 'failed' });
    expect(record.agent_exit_code).not.toBe(0);
    const { sandboxes } = world().account.client;
    const whole = await sandboxes.logs(vmId, { bytes: 1_048_576 });
    expect(whole.content).toMatch(/refused|401|unauthor/i);
    expect(whole).toMatchObject({
      truncated: false,
      total_bytes: Buffer.byteLength(whole.content),
    });
    expect(whole.content).not.toContain(world().key);
    const line = await sandboxes.logs(vmId, { lines: 1 });
    expect(whole.content.endsWith(line.content)).toBe(true);
    expect(line.content.trim().split('\n')).toHaveLength(1);
    const tail = await sandboxes.logs(vmId, { bytes: 8 });
    expect(Buffer.byteLength(tail.content)).toBeLessThanOrEqual(8);
    expect(tail.truncated).toBe(true);
    await sandboxes.delete(vmId);
    expect((await sandboxes.logs(vmId, { bytes: 1_048_576 })).content).toBe(whole.content);
  });
});
