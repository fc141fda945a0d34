import { AGENTS } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import { runOneShot } from '../../test/sessions/run-one-shot.ts';
import { useSessionFixture } from '../../test/sessions/session-fixture.ts';

const fixture = useSessionFixture({
  rules: [
    { when: { user: 'fail' }, reply: { status: 401 } },
    { when: { user: 'greet (\\S+)' }, reply: { text: 'Good day, $1.' } },
  ],
});

describe.concurrent.each([...AGENTS])('%s', (agent) => {
  test('runs its task and exits', { timeout: 600_000 }, async () => {
    const record = await runOneShot(fixture(), agent, `Please greet Ada-of-${agent}`);
    expect(record).toMatchObject({
      agent_status: 'completed',
      agent_exit_code: 0,
      state: 'running',
    });
    const { account, models, key } = fixture();
    const { content } = await account.client.sandboxes.logs(record.vm_id, { lines: 100 });
    expect(content).toContain(`Good day, Ada-of-${agent}.`);
    const asked = models.requests.filter(({ body }) =>
      JSON.stringify(body).includes(`greet Ada-of-${agent}`),
    );
    expect(asked.length).toBeGreaterThan(0);
    expect(JSON.stringify(asked[0]?.headers)).toContain(key);
    await account.client.sandboxes.delete(record.vm_id);
  });
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
