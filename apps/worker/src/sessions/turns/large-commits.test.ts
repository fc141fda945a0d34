import { expect, test } from 'vitest';
import { useSessionLab } from '../../../test/session-lab.ts';

const MIB = 1024 * 1024;

const lab = useSessionLab();

/** A session whose guest ends a turn of some MiB. */
async function endLargeTurn(tenant: string): Promise<void> {
  const guest = await lab().addGuest();
  await lab().harness.startSession({}, { tenant_id: tenant });
  for (let sent = 0; sent < 4; sent += 1)
    guest.frame({ type: 'text_delta', data: 'x'.repeat(MIB) });
  guest.state('done');
  // All but the state, which waits for its commit.
  await expect.poll(() => guest.unacknowledged, { timeout: 20_000 }).toBeLessThanOrEqual(1);
}

test('an account commits few large turns at a time, and not those of all accounts together', async () => {
  const gate = Promise.withResolvers<void>();
  lab().store.gate = gate.promise;
  for (let ended = 0; ended < 4; ended += 1) await endLargeTurn('usr_greedy');
  await expect.poll(() => lab().store.commitsAsked).toBeGreaterThanOrEqual(2);
  await endLargeTurn('usr_other');
  await expect.poll(() => lab().store.commitsAsked).toBeGreaterThanOrEqual(3);
  expect(lab().store.commitsAsked).toBe(3);
  gate.resolve();
  const committed = () => new Set(lab().store.turns.map(({ session }) => session)).size;
  await expect.poll(committed, { timeout: 20_000 }).toBe(5);
}, 60_000);
