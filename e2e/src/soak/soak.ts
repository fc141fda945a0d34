import { SvcError } from '@svc/sdk';
import { Access } from '../../test/access.ts';
import { idleState, returnsToIdle } from '../../test/machine/consistency.ts';
import { leftoversOf } from '../../test/machine/footprint.ts';
import { instanceOf } from '../../test/machine/instance.ts';
import type { Account } from '../../test/sign-up.ts';
import { startService } from '../../test/start-service.ts';
import { OperationCounts } from './operation-counts.ts';
import { Random } from './random.ts';
import { VirtualUser } from './virtual-user.ts';

const POOL = 2;
const ACTORS = 4;
const DELETE_MS = 120_000;

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  /** Shows how far it is. */
  readonly say: (line: string) => void;
}

/**
 * Uses a service of its own at random for a while, deletes everything, and looks for what is left: first
 * against what the service held when it was idle, then, when it has ended, against nothing at all.
 * Gives what was left over and what failed; empty when all is well.
 */
export async function soak({ minutes, seed, say }: SoakOptions): Promise<string[]> {
  await using service = await startService({ env: { SVC_POOL: `standard=${POOL}` } });
  const instance = await instanceOf(service.dataDir);
  const access = new Access(service.address);
  const accounts = await Promise.all(Array.from({ length: ACTORS }, () => access.signUp()));
  const idle = await idleState(instance, POOL);
  say(`seed ${seed}, ${minutes} minute(s), ${ACTORS} customers on ${service.address.baseUrl}`);

  const tally = new OperationCounts();
  const end = performance.now() + minutes * 60_000;
  const actors = accounts.map(
    ({ client }, index) =>
      new VirtualUser(client, new Random(seed + index), tally, service.dataDir),
  );
  await Promise.all(actors.map((actor) => actor.run(end)));
  say(tally.toString());

  await Promise.all(accounts.map(deleteAll));
  const problems = [...tally.failures];
  await returnsToIdle(instance, idle).catch((error: unknown) => problems.push(String(error)));
  await Promise.all(accounts.map(({ client }) => client.close()));
  const { exitCode, output } = await service.svc('down');
  if (exitCode !== 0) problems.push(`svc down ended with ${exitCode}: ${output}`);
  problems.push(...(await leftoversOf(instance)).map((left) => `left over: ${left}`));
  if (problems.length > 0)
    problems.push(`the service's log:\n${(await service.log()).slice(-8_000)}`);
  return problems;
}

async function deleteAll({ client: { sandboxes } }: Account): Promise<void> {
  const listed = await sandboxes.list();
  const living = listed.sandboxes.filter(({ state }) => state !== 'destroyed');
  await Promise.all(
    living.map(({ vm_id: id }) =>
      sandboxes.delete(id, { timeoutMs: DELETE_MS }).catch((error: unknown) => {
        // One that was being taken back at this moment.
        if (!(error instanceof SvcError && error.code === 'sandbox_not_found')) throw error;
      }),
    ),
  );
}
