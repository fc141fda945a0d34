import { type Config, loadServiceConfig } from '@svc/config';
import { openFleet } from '@svc/store';
import { withDatabase } from '../../service/operator-database.ts';
import { certificateCheck } from '../checks/configuration.ts';
import { objectStoreCheck } from '../checks/object-store.ts';
import { quarantineCheck } from '../checks/quarantine.ts';
import { type Check, type Finding, findingsOf } from '../findings.ts';
import { controlPlaneFindings } from './control-planes.ts';
import { askDatabase, databaseFindings } from './database.ts';
import { frontFindings } from './fronts.ts';
import { runtimeHostFindings } from './runtime-hosts.ts';
import { workerFindings } from './workers.ts';

/** Checks of what the settings of this machine name, which the whole fleet uses. */
const CONFIGURED = [objectStoreCheck, certificateCheck];
const MEND = 'check the database and SVC_DATABASE_URL';

/**
 * Examines the fleet of the configured database: each fault is one finding, for as long as it lasts. Needs the settings of
 * a control plane, and a network that reaches the workers.
 * @throws CliError `no_database`, ConfigError
 */
export async function examineFleet(): Promise<Finding[]> {
  const config = loadServiceConfig();
  return withDatabase(config, (url) => examine(config, url));
}

async function examine(config: Config, url: string): Promise<Finding[]> {
  await using fleet = openFleet(url);
  const run = ({ name, run }: Check) =>
    findingsOf(name, () => run({ config, service: undefined }), MEND);
  const inDatabase = async () => {
    const asked = await askDatabase(fleet);
    return [
      ...databaseFindings(asked),
      ...(
        await Promise.all([
          findingsOf('control planes', () => controlPlaneFindings(fleet), MEND),
          findingsOf('runtime hosts', () => runtimeHostFindings(fleet), MEND),
          findingsOf('workers', () => workerFindings(fleet, asked), MEND),
          run(quarantineCheck),
        ])
      ).flat(),
    ];
  };
  const found = await Promise.all([
    // Without the database, everything that is in it would be reported as a fault of its own.
    findingsOf('database', inDatabase, MEND),
    findingsOf('public URL', () => frontFindings(config), MEND),
    ...CONFIGURED.map(run),
  ]);
  return found.flat();
}
