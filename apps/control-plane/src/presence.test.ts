import { afterEach, beforeEach, expect, test } from 'vitest';
import { Harness } from '../test/harness.ts';

let harness: Harness;

beforeEach(async () => {
  harness = await Harness.start();
});
afterEach(() => harness?.[Symbol.asyncDispose]());

/** A later version has run a migration. */
const later = (name: string) =>
  harness.sql.query(`insert into kysely_migration values ($1, now()::text)`, [name]);
const alive = async () => (await harness.sql.query('select knows from control_planes')).rows;
const isReady = async () => (await harness.call('GET', '/readyz')).status;

test('a control plane starts on the schema of a later version, and is known to be alive', async () => {
  expect(await alive()).toMatchObject([{ knows: expect.arrayContaining(['0052-control-planes']) }]);
  await later('9001-more');
  const another = await harness.startAnother();
  expect(await alive()).toHaveLength(2);
  await another.close();
  expect(await alive()).toHaveLength(1);
  await harness.restart();
  expect(await isReady()).toBe(200);
  expect(await alive()).toHaveLength(1);
});

test('one that is too old for the schema does not start, and one that runs is not ready', async () => {
  await later('9001-more');
  await later('9002-less');
  await harness.sql.query(`insert into schema_contractions values ('9002-less', '9001-more')`);
  await expect(harness.startAnother()).rejects.toThrow('9001-more');
  await expect.poll(isReady, { timeout: 30_000 }).toBe(503);
  expect(harness.logLines.filter((line) => line.includes('changed the schema'))).toHaveLength(1);
});
