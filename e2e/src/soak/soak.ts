import { Access } from '../../test/access.ts';
import { idleState, returnsToIdle } from '../../test/machine/consistency.ts';
import { leftoversOf } from '../../test/machine/footprint.ts';
import { instanceOf } from '../../test/machine/instance.ts';
import { startService } from '../../test/start-service.ts';
import { checkMoney } from './check-money.ts';
import { Crashes } from './crashes.ts';
import { deleteAll } from './delete-all.ts';
import { endAfter } from './end-after.ts';
import { OperationCounts } from './operation-counts.ts';
import { Random } from './random.ts';
import { VirtualUser } from './virtual-user.ts';

const POOL = 2;
const USERS = 4;
/** High enough that every sandbox costs whole cents. */
const PRICES = { SVC_PRICE_CPU_SECOND_MICROUSD: '7013', SVC_PRICE_GIB_SECOND_MICROUSD: '1009' };

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  /** Whether the service and its database are killed meanwhile. */
  readonly crashes: boolean;
  /** Receives lines about the progress. */
  readonly report: (line: string) => void;
  /** Ends the use early. The checks go on. */
  readonly signal: AbortSignal;
}

/**
 * Uses a private service at random for some minutes, deletes all sandboxes, checks that the usage is billed to the
 * cent, and looks for leftovers: first compared with the resources of the idle service, then, after it has ended, any at
 * all.
 * Returns the failures and leftovers; an empty list means success.
 */
export async function soak(options: SoakOptions): Promise<string[]> {
  const { minutes, seed, crashes, report, signal } = options;
  const env = { SVC_POOL: `standard=${POOL}`, ...PRICES };
  await using service = await startService({ env });
  const instance = await instanceOf(service.dataDir);
  const access = new Access(service.address);
  const accounts = await Promise.all(Array.from({ length: USERS }, () => access.signUp()));
  const idle = await idleState(instance, POOL);
  report(`seed ${seed}, ${minutes} minute(s), ${USERS} customers on ${service.address.baseUrl}`);

  const counts = new OperationCounts();
  const end = endAfter(minutes, signal);
  const [first] = accounts;
  if (first === undefined) throw new Error('there are no customers');
  const killer = new Crashes(service, first.client, new Random(seed + USERS));
  const users = accounts.map(
    ({ client }, index) =>
      new VirtualUser(client, new Random(seed + index), counts, service.dataDir, killer),
  );
  await Promise.all([...users.map((user) => user.run(end)), ...(crashes ? [killer.run(end)] : [])]);
  report(`${counts}\nkilled: ${JSON.stringify(Object.fromEntries(killer.counts))}`);

  await Promise.all(accounts.map(deleteAll));
  const problems = [...counts.failures];
  await returnsToIdle(instance, idle).catch((error: unknown) => problems.push(String(error)));
  const killed = new Set(users.flatMap((user) => [...user.killed]));
  problems.push(...(await checkMoney(service, killed, report)));
  await Promise.all(accounts.map(({ client }) => client.close()));
  const { exitCode, output } = await service.svc('down');
  if (exitCode !== 0) problems.push(`svc down ended with ${exitCode}: ${output}`);
  problems.push(...(await leftoversOf(instance)).map((left) => `left over: ${left}`));
  if (problems.length > 0)
    problems.push(`the service's log:\n${(await service.log()).slice(-8_000)}`);
  return problems;
}
