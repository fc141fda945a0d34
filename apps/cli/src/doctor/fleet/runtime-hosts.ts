import type { OpenFleet } from '@svc/store';
import { type Finding, ok, warn } from '../findings.ts';

/** A runtime host reports every 5 seconds. */
const SILENT_SECONDS = 15;

/** The runtime hosts that are alive, or were a short while ago. */
export async function runtimeHostFindings({
  runtimeHosts,
}: Pick<OpenFleet, 'runtimeHosts'>): Promise<Finding[]> {
  const listed = await runtimeHosts.list();
  const silent = listed.filter(({ silent_seconds }) => silent_seconds > SILENT_SECONDS);
  const found = silent.map(({ name, silent_seconds }) =>
    warn(
      'runtime host',
      `${name} ended without a shutdown ${Math.round(silent_seconds)} s ago, or reaches no control plane`,
      'look at its process and its log; it is forgotten an hour after its last report',
    ),
  );
  const alive = listed.length - silent.length;
  if (alive > 0) return [...found, ok('runtime hosts', `${alive} running`)];
  // Those of earlier versions do not report.
  const mend = 'start one: svc runtime, or finish the upgrade';
  return [...found, warn('runtime hosts', 'none reports: sessions cannot be reached', mend)];
}
