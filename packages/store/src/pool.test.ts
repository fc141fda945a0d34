import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../test/test-postgres.ts';
import { connectForRequests } from './connect.ts';
import { REQUEST_DEADLINES } from './pool.ts';
import { onBehalfOf, type StatementOwner } from './statement-owner.ts';

let postgres: TestPostgres;

beforeAll(async () => {
  postgres = await startTestPostgres();
});
afterAll(() => postgres?.[Symbol.asyncDispose]());

const OWNERS: readonly StatementOwner[] = [
  { pool: 'customers', key: 'usr_a' },
  { pool: 'service', key: 'wrk_a' },
  { pool: 'service', key: '' },
];

test.each(OWNERS)(
  'an owner whose transactions take long leaves connections to others: $pool "$key"',
  async (owner) => {
    const { db } = connectForRequests(postgres.url, REQUEST_DEADLINES, {});
    const gate = Promise.withResolvers<void>();
    let begun = 0;
    const hold = () =>
      db.transaction().execute(() => {
        begun += 1;
        return gate.promise;
      });
    // More than there are connections.
    const held = onBehalfOf(owner, () => Promise.allSettled(Array.from({ length: 20 }, hold)));
    try {
      await expect.poll(() => begun).toBeGreaterThanOrEqual(4);
      const other = { ...owner, key: 'another' };
      const { rows } = await onBehalfOf(other, () => sql`select 1 as one`.execute(db));
      expect(rows).toEqual([{ one: 1 }]);
    } finally {
      gate.resolve();
      await held;
      await db.destroy();
    }
  },
);
