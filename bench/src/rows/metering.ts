import { join } from 'node:path';
import type { UsageSample } from '@svc/contract';
import { addTenants, type PrivateLedger, startLedger } from '../bare/private-ledger.ts';
import type { Row } from '../measure/row.ts';
import { summarise } from '../measure/statistics.ts';

const SANDBOXES = 100;
const SAMPLES_PER_MINUTE = 6;
const PRICES = { cpuSecond: 14, gibSecond: 4, toolCall: 0 };

/** The cost of metering per running sandbox and minute: CPU time of a control plane, rows and write-ahead log. */
export const metering: Row = {
  name: 'metering',
  pool: 2,
  async run({ scratch, runs }) {
    await using ledger = await startLedger(join(scratch, 'metering'));
    await addTenants(ledger, 10);
    await addSandboxes(ledger);
    await report(ledger, 1);
    const cpu: number[] = [];
    const wal: number[] = [];
    for (let run = 0; run < runs; run += 1) {
      const logged = await walBytes(ledger);
      const before = process.cpuUsage();
      for (let sample = 0; sample < SAMPLES_PER_MINUTE; sample += 1) {
        await report(ledger, 2 + run * SAMPLES_PER_MINUTE + sample);
      }
      const { user, system } = process.cpuUsage(before);
      cpu.push((user + system) / 1000 / SANDBOXES);
      wal.push(((await walBytes(ledger)) - logged) / SANDBOXES);
    }
    const ours = summarise(cpu);
    const rows = await rowsOf(ledger);
    const perMinute = (rows - SANDBOXES) / SANDBOXES / runs;
    return [
      {
        name: this.name,
        what: 'metering, per running sandbox and minute',
        against: '',
        unit: 'ms CPU',
        ours,
        figure: { text: `${ours.median.toFixed(2)} ms, ${perMinute} rows`, value: ours.median },
        bound: 'reported',
        ok: true,
        notes: [
          `${SANDBOXES} sandboxes of 10 tenants in one report; CPU time of the control plane without HTTP`,
          `write-ahead log: ${(summarise(wal).median / 1024).toFixed(1)} KiB`,
        ],
      },
    ];
  },
};

async function addSandboxes({ sql }: PrivateLedger): Promise<void> {
  await sql.query(
    `insert into workers (worker_id, url, certificate, version, vcpu, memory_mib, disk_mib, templates)
     values ('w', 'https://127.0.0.1:1', '', '1', 8, 1000000, 1000000, '[]')`,
  );
  await sql.query(
    `insert into sandboxes (vm_id, tenant_id, worker_id, state, template, vcpu, memory_mib,
       idle_timeout_seconds, max_lifetime_seconds, placed_at)
     select 'vm_' || n, 'usr_' || (1 + n % 10), 'w', 'running', 'standard', 1, 512, 60, 7200,
       now() - interval '1 day'
     from generate_series(1, $1::int) n`,
    [SANDBOXES],
  );
}

/** Sends the samples of all sandboxes, as a worker does every ten seconds. */
async function report({ store }: PrivateLedger, seq: number): Promise<void> {
  const samples = Array.from({ length: SANDBOXES }, (_, index): UsageSample => {
    return {
      vm_id: `vm_${index + 1}`,
      generation: 1,
      seq,
      age_ms: 0,
      cpu_ms: seq * 700,
      wall_ms: seq * 10_000,
      input_tokens: seq * 900,
      output_tokens: seq * 80,
      tool_calls: seq,
    };
  });
  const verdicts = await store.usage.ingest('w', samples, PRICES);
  const refused = verdicts.filter((verdict) => verdict !== 'accepted');
  if (refused.length > 0) throw new Error(`${refused.length} samples were refused: ${refused[0]}`);
}

async function walBytes({ sql }: PrivateLedger): Promise<number> {
  const { rows } = await sql.query<{ bytes: number }>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes`,
  );
  return rows[0]?.bytes ?? 0;
}

async function rowsOf({ sql }: PrivateLedger): Promise<number> {
  const { rows } = await sql.query<{ rows: number }>(
    'select count(*)::int as rows from usage_records',
  );
  return rows[0]?.rows ?? 0;
}
