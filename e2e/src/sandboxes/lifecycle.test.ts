import { expect, test } from 'vitest';
import { shared } from '../support/shared-service.ts';

const { client } = await shared.signUp();
const { sandboxes } = client;

test('a sandbox is created running, listed, read, and deleted for good', async () => {
  const created = await sandboxes.create({ template: 'standard' });
  expect(created).toMatchObject({ state: 'running' });
  expect((await sandboxes.exec(created.vm_id, 'echo hi')).output).toBe('hi\n');
  await sandboxes.delete(created.vm_id);
});
