import { MicrovmError } from '@svc/microvm';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { placement } from '../../test/placement.ts';
import { startHarness } from '../../test/start-harness.ts';

const CREATE = '/internal/v1/sandboxes';
const RESUME = '/internal/v1/sandboxes/:id/resume';

test('the failures of one account hide no lines about those of others', async () => {
  const lines: Record<string, unknown>[] = [];
  const write = (text: string) => lines.push(JSON.parse(text));
  const harness = await startHarness({ logger: pino({ level: 'info' }, { write }) });
  const resume = async (tenant_id: string) => {
    const id = await harness.create({ tenant_id });
    harness.host.vmOf(id).faults.resume = new MicrovmError('resume_failed', 'it stays paused');
    await harness.json('POST', `/sandboxes/${id}/pause`);
    expect(await harness.json('POST', `/sandboxes/${id}/resume`)).toMatchObject({ status: 502 });
  };
  await resume('usr_greedy');
  await resume('usr_other');
  harness.host.failure = () => new MicrovmError('boot_failed', 'it does not start');
  for (const tenant_id of ['usr_greedy', 'usr_greedy', 'usr_other']) {
    expect(await harness.json('POST', '/sandboxes', placement({ tenant_id }))).toMatchObject({
      status: 500,
    });
  }
  const failed = lines.filter(({ msg }) => msg === 'request failed').map(({ route }) => route);
  expect(failed).toEqual([RESUME, RESUME, CREATE, CREATE]);
});
