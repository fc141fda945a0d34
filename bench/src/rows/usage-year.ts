import { join } from 'node:path';
import { addDays, dayOf } from '@svc/contract';
import { addTenants, databaseMs, startLedger } from '../bare/private-ledger.ts';
import type { Row } from '../measure/row.ts';
import { summarise } from '../measure/statistics.ts';

const TENANTS = 200;
const DAYS = 365;
const AT_MOST_MS = 20;
/** Fewer say nothing about the slowest twentieth. */
const LEAST_RUNS = 100;

/** Reads a year of daily usage of one of many tenants who use the service every day. */
export const usageYear: Row = {
  name: 'usage-year',
  pool: 2,
  async run({ scratch, runs }) {
    await using ledger = await startLedger(join(scratch, 'usage-year'));
    await addTenants(ledger, TENANTS);
    await ledger.sql.query(
      `insert into usage_days (tenant_id, day, cpu_ms, wall_ms, input_tokens, output_tokens,
         tool_calls, cost_microusd, sandboxes, sessions)
       select 'usr_' || n, current_date - d, 86400000, 864000000, 5000000, 400000, 9000, 7654321, 400, 200
       from generate_series(1, $1::int) n, generate_series(0, $2::int - 1) d`,
      [TENANTS, DAYS],
    );
    await ledger.sql.query('analyze usage_days');
    const to = addDays(dayOf(Date.now()), 1);
    const range = { from: addDays(to, -DAYS), to };
    const took: number[] = [];
    for (let run = 0; run < Math.max(runs, LEAST_RUNS); run += 1) {
      const before = await databaseMs(ledger, 'usage_days');
      const days = await ledger.store.usage.days(`usr_${1 + (run % TENANTS)}`, range);
      if (days.length < DAYS - 1) throw new Error(`${days.length} days, not ${DAYS}`);
      took.push((await databaseMs(ledger, 'usage_days')) - before);
    }
    const ours = summarise(took);
    return [
      {
        name: this.name,
        what: `a year of daily usage of one of ${TENANTS} busy tenants`,
        against: '',
        unit: 'ms',
        ours,
        figure: { text: `p95 ${ours.p95.toFixed(1)} ms`, value: ours.p95 },
        bound: `≤ ${AT_MOST_MS} ms`,
        ok: ours.p95 <= AT_MOST_MS,
        notes: ['the time of the database, by its own statistics'],
      },
    ];
  },
};
