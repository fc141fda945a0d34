import type { Customer } from './customer.ts';
import type { FleetLab } from './fleet-lab.ts';
import { RequestLoad } from './request-load.ts';

export interface RollingRestart {
  /** How long the long requests take that go on meanwhile. */
  readonly longSeconds: number;
  /** Another checkout, to whose version of svc the fleet changes. Default: this one. */
  readonly checkout?: string | undefined;
}

/**
 * Restarts every control plane, runtime host and worker in place, each once the load balancer uses the one before again, while
 * requests go on. Returns what failed or ended meanwhile, and how many requests were answered.
 */
export async function rollingRestart(
  lab: FleetLab,
  customers: readonly Customer[],
  { longSeconds, checkout }: RollingRestart,
): Promise<{ readonly problems: string[]; readonly answered: number; readonly longestMs: number }> {
  await using load = await RequestLoad.start(await lab.signUp(), longSeconds);
  const sandboxes = () => Promise.all(customers.map(async (customer) => customer.sandbox()));
  const before = await sandboxes();
  for (const piece of [...lab.controlPlanes, ...lab.runtimeHosts, ...lab.workers]) {
    await piece.end('SIGTERM');
    await piece.start({}, checkout);
    await lab.untilBalanced(piece);
  }
  const problems = [...(await load.problems())];
  for (const [index, { vm_id: vmId, state }] of (await sandboxes()).entries()) {
    const was = before[index]?.vm_id;
    if (vmId !== was) problems.push(`the session in ${was} went on in ${vmId}`);
    else if (state !== 'running') problems.push(`${vmId} is ${state}`);
  }
  return { problems, answered: load.answered, longestMs: load.longestMs };
}
