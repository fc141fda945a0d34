import type { UsageCounters } from '@svc/contract';
import type { Transaction } from 'kysely';
import type { Schema } from '../../schema.ts';
import { countersOf } from './counters.ts';

/** What a sandbox used between two samples, the later of which has this `seq`. */
export interface NewRecord extends UsageCounters {
  readonly vm_id: string;
  readonly generation: number;
  readonly seq: number;
  readonly tenant_id: string;
  readonly cost: bigint;
  readonly used_at: Date;
}

/** The records of one report: one per sandbox and UTC day, however many samples it has. Records are kept for ever. */
export class NewRecords {
  readonly #records = new Map<string, NewRecord>();

  /** Adds a record that is later than those of the same sandbox before it. */
  add(record: NewRecord): void {
    const { vm_id, generation, used_at } = record;
    const key = `${vm_id} ${generation} ${used_at.toISOString().slice(0, 10)}`;
    const earlier = this.#records.get(key);
    this.#records.set(key, {
      ...record,
      ...countersOf((name) => record[name] + (earlier?.[name] ?? 0)),
      cost: record.cost + (earlier?.cost ?? 0n),
    });
  }

  async insert(transaction: Transaction<Schema>): Promise<void> {
    const rows = [...this.#records.values()].map(({ cost, ...record }) => ({
      ...record,
      cost_microusd: String(cost),
    }));
    if (rows.length > 0) await transaction.insertInto('usage_records').values(rows).execute();
  }
}
