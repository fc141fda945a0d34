import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@svc/config';
import { servicePlaces } from '../../service/places.ts';
import { readServiceRecord } from '../../service/service-record.ts';
import { type Check, ok, warn } from '../finding.ts';

/** The service itself, and whether one that ran before ended in order. */
export const serviceCheck: Check = {
  name: 'service',
  run: async ({ config, service }) => {
    if (service !== undefined) {
      return ok('service', `${service.state}, ${service.base_url ?? 'not listening yet'}`);
    }
    const left = await readServiceRecord(servicePlaces(config.dataDir).record);
    if (left === undefined) return ok('service', `not running${await waitingSandboxes(config)}`);
    return warn(
      'service',
      `the one of ${left.started_at} ended without cleaning up`,
      '`svc up` goes on where it was; `svc down` cleans up',
    );
  },
};

/** Sandboxes that `svc down --keep-sandboxes` left for the next start. */
async function waitingSandboxes({ dataDir }: Config): Promise<string> {
  const names = await readdir(join(dataDir, 'vms')).catch(() => []);
  return names.length === 0 ? '' : `; ${names.length} sandbox(es) wait for the next start`;
}
