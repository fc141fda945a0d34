import { SvcError } from '@svc/sdk';
import type { Account } from '../../test/sign-up.ts';

const DELETE_MS = 120_000;

/** Deletes every sandbox of an account. */
export async function deleteAll({ client: { sandboxes } }: Account): Promise<void> {
  const listed = await sandboxes.list();
  const living = listed.sandboxes.filter(({ state }) => state !== 'destroyed');
  await Promise.all(
    living.map(({ vm_id: id }) =>
      sandboxes.delete(id, { timeoutMs: DELETE_MS }).catch((error: unknown) => {
        // An abandoned create was just being undone.
        if (!(error instanceof SvcError && error.code === 'sandbox_not_found')) throw error;
      }),
    ),
  );
}
