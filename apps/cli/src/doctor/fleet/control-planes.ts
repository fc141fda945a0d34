import type { OpenFleet } from '@svc/store';
import { type Finding, fail, ok, warn } from '../findings.ts';
import { bySilence, endedSilently } from './silent.ts';

/** The control planes that are alive, or were a short while ago. */
export async function controlPlaneFindings({
  controlPlanes,
}: Pick<OpenFleet, 'controlPlanes'>): Promise<Finding[]> {
  const { alive, silent } = bySilence(await controlPlanes.list());
  const found = silent.map((one) =>
    warn(
      'control plane',
      `${endedSilently(one.control_plane_id, one)}, or is cut off from the database`,
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
