import type { OpenFleet } from '@svc/store';
import { type Finding, ok, warn } from '../findings.ts';
import { bySilence, endedSilently } from './silent.ts';

/** The runtime hosts that are alive, or were a short while ago. */
export async function runtimeHostFindings({
  runtimeHosts,
}: Pick<OpenFleet, 'runtimeHosts'>): Promise<Finding[]> {
  const { alive, silent } = bySilence(await runtimeHosts.list());
  const found = silent.map((one) =>
    warn(
      'runtime host',
      `${endedSilently(one.name, one)}, or reaches no control plane`,
      'look at its process and its log; it is forgotten an hour after its last report',
    ),
  );
  if (alive.length > 0) return [...found, ok('runtime hosts', `${alive.length} running`)];
  // Those of earlier versions do not report.
  const mend = 'start one: svc runtime, or finish the upgrade';
  return [...found, warn('runtime hosts', 'none reports: sessions cannot be reached', mend)];
}
