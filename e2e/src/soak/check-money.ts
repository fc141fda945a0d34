import { type PrivateService, until } from '@svc/service-driver';
import { queryLedger } from '../../test/machine/ledger.ts';

/** Posting runs every few seconds. */
const POSTED_MS = 120_000;

/** The counters that the records of a sandbox have to add up to. */
const COUNTERS = ['cpu_ms', 'wall_ms', 'input_tokens', 'output_tokens', 'tool_calls']
  .concat('cost_microusd')
  .map((name) => ({ meter: `meter.${name}`, sum: `coalesce(sum(record.${name}), 0)` }));

/** The ended sandboxes whose records do not add up to their last counters. */
const DIFFERENT = `
  select meter.vm_id || ' generation ' || meter.generation as subject
  from usage_meters meter
    join sandboxes on sandboxes.vm_id = meter.vm_id and sandboxes.state = 'destroyed'
    left join usage_records record
      on record.vm_id = meter.vm_id and record.generation = meter.generation
  group by meter.vm_id, meter.generation, ${COUNTERS.map(({ meter }) => meter).join(', ')}
  having (${COUNTERS.map(({ meter }) => meter).join(', ')})
    is distinct from (${COUNTERS.map(({ sum }) => sum).join(', ')})`;

const FIGURES = `
  select (select count(*) from sandboxes where state = 'destroyed') as ended,
    (select count(*) from sandboxes where state = 'destroyed' and running_at is null) as never_ran,
    (select count(*) from usage_meters) as metered,
    (select count(*) from usage_records) as records,
    (select coalesce(sum(cost_microusd), 0) from usage_records) as cost_microusd,
    (select coalesce(-sum(amount_cents), 0) from ledger_entries where kind = 'usage') as posted_cents,
    (select coalesce(sum(carry_microusd), 0) from billing_accounts) as carried_microusd`;

/** The ended sandboxes that ran and have no meter, so that nobody pays for them. */
const UNMETERED = `
  select vm_id, end_reason, round(extract(epoch from ended_at - running_at)) as ran_s from sandboxes where state = 'destroyed' and running_at is not null
    and not exists (select from usage_meters where usage_meters.vm_id = sandboxes.vm_id)`;

/**
 * Waits until all usage is posted. Returns what `svc billing verify` finds wrong, and the ended sandboxes whose records
 * do not add up to their last counters. Reports those that were never metered, apart from the `killed` ones.
 */
export async function checkMoney(
  service: PrivateService,
  killed: ReadonlySet<string>,
  report: (line: string) => void,
): Promise<string[]> {
  const { dataDir } = service;
  const open = 'select from usage_records where posted_entry is null limit 1';
  await until('all usage is posted', async () => (await queryLedger(dataDir, open)).length === 0, {
    deadlineMs: POSTED_MS,
    intervalMs: 500,
  });
  const [figures] = await queryLedger<Record<string, string>>(dataDir, FIGURES);
  report(`money: ${JSON.stringify(figures)}`);
  const different = await queryLedger<{ subject: string }>(dataDir, DIFFERENT);
  const { exitCode, output } = await service.svc('billing', 'verify');
  report(output.trimEnd());
  const unmetered = await queryLedger<{ vm_id: string }>(dataDir, UNMETERED);
  // A VM that ends while no worker runs, or with its worker, cannot be measured any more.
  const others = unmetered.filter(({ vm_id }) => !killed.has(vm_id));
  report(`not metered: ${unmetered.length}, of which not killed: ${JSON.stringify(others)}`);
  const problems = different.map(({ subject }) => `records of ${subject} are not its counters`);
  if (exitCode !== 0) problems.push(`svc billing verify ended with ${exitCode}:\n${output}`);
  return problems;
}
