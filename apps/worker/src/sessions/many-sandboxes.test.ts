import { expect, test } from 'vitest';
import { useSessionLab } from '../../test/session-lab.ts';
import type { SessionSocket } from '../../test/session-socket.ts';

const MIB = 1024 * 1024;
/** Almost as long as a client's frame may be. */
const PROMPT = 'x'.repeat(MIB - 1024);
const FRAMES = 4;

const lab = useSessionLab({ linkBytesPerTenant: 5 * MIB });

/** Sends frames to a session whose guest confirms none; returns how many its worker holds. */
async function fill(tenant: string): Promise<number> {
  const guest = await lab().addGuest();
  guest.answersReceived = false;
  guest.onClient = () => undefined;
  const { session } = await lab().harness.startSession({}, { tenant_id: tenant });
  const client = await lab().attach(session);
  for (let sent = 0; sent < FRAMES; sent += 1) client.send({ type: 'task', prompt: PROMPT });
  // A link that breaks sends its frames again.
  const accepted = () => new Set(guest.all('client').map(({ c }) => c)).size;
  await expect.poll(() => accepted() + busyOf(client), { timeout: 20_000 }).toBe(FRAMES);
  return accepted();
}

function busyOf(client: SessionSocket): number {
  return client.frames.filter(({ code }) => code === 'busy').length;
}

test('the sandboxes of an account hold no more for their guests than it may, and those of others go on', async () => {
  let held = 0;
  for (let started = 0; started < 4; started += 1) held += await fill('usr_greedy');
  // Each sandbox holds one without a charge.
  expect(held).toBeLessThanOrEqual(5 + 4);
  expect(await fill('usr_other')).toBe(FRAMES);
}, 60_000);
