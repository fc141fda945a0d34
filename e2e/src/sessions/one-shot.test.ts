import { until } from '@svc/service-driver';
import { describe, expect, test } from 'vitest';
import { refusedUpgrade } from '../../test/sessions/raw-socket.ts';
import { runOneShot } from '../../test/sessions/run-one-shot.ts';
import { textOf } from '../../test/sessions/session-client.ts';
import { MODELS, useSessionFixture } from '../../test/sessions/session-fixture.ts';
import { shared } from '../../test/shared-service.ts';

const fixture = useSessionFixture({
  rules: [
    { when: { user: 'fail' }, reply: { status: 401 } },
    { when: { user: 'linger' }, reply: { text: 'At last.', first_byte_delay_ms: 25_000 } },
    { when: { user: 'greet (\\S+)' }, reply: { text: 'Good day, $1.' } },
  ],
});

describe.concurrent('the log of an agent', () => {
  test('that failed names the cause, and is readable by lines and by bytes', {
    timeout: 600_000,
  }, async () => {
    const record = await runOneShot(fixture(), 'deictic', 'Please fail');
    expect(record).toMatchObject({ agent_status: 'failed' });
    expect(record.agent_exit_code).not.toBe(0);
    const { sandboxes } = fixture().account.client;
    const whole = await sandboxes.logs(record.vm_id, { bytes: 1_048_576 });
    expect(whole.content).toMatch(/refused|401|unauthor/i);
    expect(whole).toMatchObject({
      truncated: false,
      total_bytes: Buffer.byteLength(whole.content),
    });
    expect(whole.content).not.toContain(fixture().key);
    const line = await sandboxes.logs(record.vm_id, { lines: 1 });
    expect(whole.content.endsWith(line.content)).toBe(true);
    expect(line.content.trim().split('\n')).toHaveLength(1);
    const tail = await sandboxes.logs(record.vm_id, { bytes: 8 });
    expect(Buffer.byteLength(tail.content)).toBeLessThanOrEqual(8);
    expect(tail.truncated).toBe(true);
    await sandboxes.delete(record.vm_id);
    expect((await sandboxes.logs(record.vm_id, { bytes: 1_048_576 })).content).toBe(whole.content);
  });
});

/** Creates a sandbox with deictic, which the caller deletes. */
async function createAgent(more: object = {}): Promise<string> {
  const { account, models, key } = fixture();
  const { vm_id } = await account.client.sandboxes.create({
    template: 'standard',
    agent: 'deictic',
    model: MODELS.deictic.model,
    llm_key: key,
    env_vars: { LLM_BASE_URL: models.url },
    ...more,
  });
  return vm_id;
}

test.concurrent('an agent outlasts the idle timeout while it works, which begins when it exits', {
  timeout: 600_000,
}, async () => {
  const { sandboxes } = fixture().account.client;
  const record = await runOneShot(fixture(), 'deictic', 'Please linger', {
    idle_timeout_seconds: 2,
  });
  expect(record).toMatchObject({ agent_status: 'completed', agent_exit_code: 0 });
  const ended = await until(
    'the sandbox has ended',
    async () => {
      const now = await sandboxes.get(record.vm_id);
      return now.state === 'destroyed' && now;
    },
    { deadlineMs: 150_000 },
  );
  expect(ended).toMatchObject({ end_reason: 'idle_timeout', agent_status: 'completed' });
});

describe.concurrent('a client of the agent of a sandbox', () => {
  test('gives tasks to one that has none, and is told of a cancel and of the end', {
    timeout: 600_000,
  }, async () => {
    const { sandboxes } = fixture().account.client;
    const id = await createAgent();
    const client = await fixture().attachTo(id);
    for (const name of ['Ada', 'Bob']) {
      expect(textOf(await client.task(`greet ${name}`, name))).toContain(`Good day, ${name}.`);
    }
    expect(await sandboxes.cancel(id)).toMatchObject({ cancelled: true });
    await client.until('system', (frame) => frame.event === 'cancel');
    expect(await sandboxes.get(id)).toMatchObject({ agent_status: 'running' });
    await sandboxes.delete(id);
    expect(await client.connection.closed).toEqual({ code: 1001, reason: 'sandbox destroyed' });
    expect(await sandboxes.get(id)).toMatchObject({ agent_status: 'failed' });
  });

  test('watches one that has a task, to its exit', { timeout: 600_000 }, async ({ expect }) => {
    const { sandboxes } = fixture().account.client;
    const id = await createAgent({ task: 'greet Ada' });
    const client = await fixture().attachTo(id, 0);
    const { code, reason } = await client.connection.closed;
    expect({ code, reason }).toEqual({ code: 1000, reason: 'agent exited' });
    expect(textOf(client.frames)).toContain('Good day, Ada.');
    expect(client.seqs).toEqual(client.seqs.map((_seq, index) => index + 1));
    // Clients learn of the exit from the worker, which tells the ledger at the same time.
    const accessible = () => sandboxes.access(id).catch((error: unknown) => error);
    await expect
      .poll(accessible, { timeout: 60_000 })
      .toMatchObject({ status: 409, code: 'agent_ended' });
    await sandboxes.delete(id);
  });

  test('needs the token of that sandbox', { timeout: 600_000 }, async () => {
    const { sandboxes } = fixture().account.client;
    const ids = await Promise.all([createAgent(), createAgent()]);
    const [first, second] = await Promise.all(ids.map((id) => sandboxes.access(id)));
    const headers = { authorization: `Bearer ${first?.jwt}` };
    const { status } = await refusedUpgrade(shared, second?.connect_url ?? '', headers);
    expect(status).toBe(403);
    await Promise.all(ids.map((id) => sandboxes.delete(id)));
  });
});
