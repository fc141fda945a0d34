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
    if (left === undefined) return ok('service', 'not running');
    return warn(
      'service',
      `the one of ${left.started_at} ended without cleaning up`,
      '`svc up` goes on where it was; `svc down` cleans up',
    );
  },
};
