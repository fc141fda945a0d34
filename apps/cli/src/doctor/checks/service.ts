import { readdir } from 'node:fs/promises';
import type { Config } from '@svc/config';
import { listImages } from '@svc/microvm';
import { servicePaths } from '../../service/paths.ts';
import { readServiceRecord } from '../../service/service-record.ts';
import { type Check, ok, warn } from '../findings.ts';

/** The images of the configured templates. */
export const imagesCheck: Check = {
  name: 'images',
  run: async ({ config }) => {
    const images = await listImages(config.imageDir);
    return config.templates.map((template) => {
      const name = `image ${template}`;
      const ready = images.find((image) => image.template === template && image.ready);
      if (ready !== undefined) return ok(name, ready.id);
      if (config.imageSource === 'build') {
        return warn(name, 'not built: the next start builds it', `svc image build ${template}`);
      }
      const message = 'not here: the next start gets it from the object store';
      return warn(name, message, 'svc image ls --store on the machine of a control plane shows it');
    });
  },
};

/** The running service, or the remains of one that crashed. */
export const serviceCheck: Check = {
  name: 'service',
  run: async ({ config, service }) => {
    if (service !== undefined) {
      return ok('service', `${service.state}, ${service.base_url ?? 'not listening yet'}`);
    }
    const crashed = await readServiceRecord(servicePaths(config.dataDir).record);
    if (crashed === undefined) return ok('service', `not running${await keptSandboxes(config)}`);
    return warn(
      'service',
      `the service started at ${crashed.started_at} ended without cleaning up`,
      '`svc up` recovers it; `svc down` cleans up',
    );
  },
};

/** Mentions the sandboxes that `svc down --keep-sandboxes` left for the next start. */
async function keptSandboxes({ dataDir }: Config): Promise<string> {
  const names = await readdir(servicePaths(dataDir).vms).catch(() => []);
  return names.length === 0 ? '' : `; ${names.length} sandbox(es) are kept for the next start`;
}
