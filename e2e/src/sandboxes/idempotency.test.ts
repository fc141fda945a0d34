import { randomUUID } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import { shared } from '../../test/shared-service.ts';

const { client } = await shared.signUp();
const { sandboxes } = client;
const request = { template: 'standard', metadata: { a: 1, b: 2 } };

afterAll(async () => {
  const list = await sandboxes.list();
  await Promise.all(list.sandboxes.map(({ vm_id }) => sandboxes.delete(vm_id)));
  await client.close();
});

test('the same key and body return the same sandbox; another body is rejected', async () => {
  const idempotencyKey = randomUUID();
  const first = await sandboxes.create(request, { idempotencyKey });
  const reordered = { metadata: { b: 2, a: 1 }, template: 'standard' };
  expect(await sandboxes.create(reordered, { idempotencyKey })).toEqual(first);
  const list = await sandboxes.list();
  expect(list.sandboxes.map(({ vm_id }) => vm_id)).toEqual([first.vm_id]);

  const other = sandboxes.create({ ...request, metadata: { a: 2 } }, { idempotencyKey });
  await expect(other).rejects.toMatchObject({ code: 'idempotency_key_reused', status: 409 });
});

test('concurrent requests with one key create one sandbox', async () => {
  const idempotencyKey = randomUUID();
  const retrying = (await shared.signUp()).client;
  const create = () =>
    retrying.sandboxes.create(request, { idempotencyKey }).then(
      ({ vm_id }) => vm_id,
      (error: { code: string }) => error.code,
    );
  const answers = new Set(await Promise.all(Array.from({ length: 4 }, create)));
  answers.delete('idempotency_in_progress');
  expect(answers.size).toBe(1);
  const list = await retrying.sandboxes.list();
  expect(list.sandboxes.map(({ vm_id }) => vm_id)).toEqual([...answers]);
  await retrying.sandboxes.delete([...answers].join());
  await retrying.close();
});

test('accounts do not share keys', async () => {
  const idempotencyKey = randomUUID();
  const other = (await shared.signUp()).client;
  const mine = await sandboxes.create(request, { idempotencyKey });
  const theirs = await other.sandboxes.create(request, { idempotencyKey });
  expect(theirs.vm_id).not.toBe(mine.vm_id);
  await other.sandboxes.delete(theirs.vm_id);
  await other.close();
});
