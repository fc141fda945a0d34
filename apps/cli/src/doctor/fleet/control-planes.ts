import type { OpenFleet } from '@svc/store';
import { type Finding, fail, ok, warn } from '../findings.ts';

/** A control plane beats every 5 seconds. */
const SILENT_SECONDS = 15;

/** The control planes that are alive, or were a short while ago. */
export async function controlPlaneFindings({
  controlPlanes,
}: Pick<OpenFleet, 'controlPlanes'>): Promise<Finding[]> {
  const listed = await controlPlanes.list();
  const silent = listed.filter(({ silent_seconds }) => silent_seconds > SILENT_SECONDS);
  const alive = listed.filter((one) => !silent.includes(one));
  const found = silent.map(({ control_plane_id: id, silent_seconds }) =>
    warn(
      'control plane',
      `${id} ended without a shutdown ${Math.round(silent_seconds)} s ago, or is cut off from the database`,
      'look at its process and its log; it is forgotten once another has taken its place',
    ),
  );
  if (alive.length === 0) {
    return [...found, fail('control planes', 'none is running', 'start one: svc control-plane')];
  }
  const newest = Math.max(...alive.map(({ knows }) => knows.length));
  const old = alive.filter(({ knows }) => knows.length < newest);
  if (old.length === 0) return [...found, ok('control planes', `${alive.length} running`)];
  const detail = `${old.length} of ${alive.length} run an earlier version`;
  return [...found, warn('control planes', detail, 'finish the upgrade, see docs/operations.md')];
}
