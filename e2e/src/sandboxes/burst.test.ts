import { expect, test } from 'vitest';
import { SANDBOX_LIMIT } from '../../test/global-setup.ts';
import { shared } from '../../test/shared-service.ts';

test('concurrent creates succeed up to the limit of the account and are refused beyond it', async () => {
  const { client } = await shared.signUp();
  const { sandboxes } = client;
  const request = { template: 'standard', idle_timeout_seconds: 600 } as const;
  // At once, because none of the sandboxes ends meanwhile.
  const create = async () => sandboxes.create(request, { maxWaitMs: 0 });
  const settled = await Promise.allSettled(Array.from({ length: SANDBOX_LIMIT + 2 }, create));
  const ids = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value.vm_id] : []));
  const refusals = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  try {
    expect(refusals.map(({ code, status }) => `${status} ${code}`)).toEqual(
      Array.from({ length: 2 }, () => '429 sandbox_limit_reached'),
    );
    expect(new Set(ids).size).toBe(SANDBOX_LIMIT);
    const names = await Promise.all(ids.map((id) => sandboxes.exec(id, 'hostname')));
    expect(new Set(names.map(({ output }) => output)).size).toBe(SANDBOX_LIMIT);
  } finally {
    await Promise.all(ids.map((id) => sandboxes.delete(id)));
  }
  const again = await create();
  await sandboxes.delete(again.vm_id);
  await client.close();
});
