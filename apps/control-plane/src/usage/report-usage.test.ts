import fastify from 'fastify';
import { expect, test } from 'vitest';
import { startTestLedger } from '../../test/test-ledger.ts';
import { UsageReports } from './report-usage.ts';

test('a worker that reports too often has to wait, and no other one has to', async () => {
  await using ledger = await startTestLedger();
  let now = 0;
  const prices = { cpuSecond: 0, gibSecond: 0, toolCall: 0 };
  const logger = fastify().log;
  const reports = new UsageReports(ledger.store.usage, prices, logger, () => now);
  const report = (workerId: string) => reports.take(workerId, [{ malformed: true }]);
  const answers = await Promise.allSettled(Array.from({ length: 200 }, () => report('w')));
  const refused = answers.flatMap((answer) =>
    answer.status === 'rejected' ? [answer.reason] : [],
  );
  expect(refused).toHaveLength(100);
  expect(refused[0]).toMatchObject({ code: 'rate_limited', headers: { 'retry-after': '1' } });
  expect(await report('other')).toMatchObject({ refused: [{ index: 0, reason: 'invalid' }] });
  now += 1_000;
  expect(await report('w')).toMatchObject({ accepted: 0 });
});
