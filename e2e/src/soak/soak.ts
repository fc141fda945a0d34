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
const USERS = 4;
const DELETE_MS = 120_000;

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  /** Receives lines about the progress. */
  readonly report: (line: string) => void;
}

/**
 * Uses a private service at random for some minutes, deletes all sandboxes, and looks for leftovers: first compared
 * with the resources of the idle service, then, after it has ended, any at all.
 * Returns the failures and leftovers; an empty list means success.
 */
export async function soak({ minutes, seed, report }: SoakOptions): Promise<string[]> {
  await using service = await startService({ env: { SVC_POOL: `standard=${POOL}` } });
  const instance = await instanceOf(service.dataDir);
  const access = new Access(service.address);
  const accounts = await Promise.all(Array.from({ length: USERS }, () => access.signUp()));
  const idle = await idleState(instance, POOL);
  report(`seed ${seed}, ${minutes} minute(s), ${USERS} customers on ${service.address.baseUrl}`);

  const counts = new OperationCounts();
  const end = performance.now() + minutes * 60_000;
  const users = accounts.map(
    ({ client }, index) =>
      new VirtualUser(client, new Random(seed + index), counts, service.dataDir),
  );
  await Promise.all(users.map((user) => user.run(end)));
  report(counts.toString());

  await Promise.all(accounts.map(deleteAll));
  const problems = [...counts.failures];
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
        // An abandoned create was just being undone.
        if (!(error instanceof SvcError && error.code === 'sandbox_not_found')) throw error;
      }),
    ),
  );
}
