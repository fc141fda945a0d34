import { type Config, ConfigError, loadServiceConfig } from '@svc/config';
import { servicePaths } from '../service/paths.ts';
import { runningService } from '../service/service-record.ts';
import { archiveCheck } from './checks/archive.ts';
import {
  certificateCheck,
  databaseCheck,
  internalRoutesCheck,
  portsCheck,
  settingsCheck,
} from './checks/configuration.ts';
import {
  cgroupsCheck,
  kvmCheck,
  loopDevicesCheck,
  nodeCheck,
  programsCheck,
  qemuCheck,
  userCheck,
} from './checks/host.ts';
import { networkCheck } from './checks/network.ts';
import { objectStoreCheck } from './checks/object-store.ts';
import { quarantineCheck } from './checks/quarantine.ts';
import { resourcesCheck } from './checks/resources.ts';
import { imagesCheck, serviceCheck } from './checks/service.ts';
import { type Check, type Finding, fail, findingsOf } from './findings.ts';

/** In the order of the report: the machine first, then the service on it. */
const CHECKS: readonly Check[] = [
  nodeCheck,
  userCheck,
  programsCheck,
  qemuCheck,
  kvmCheck,
  loopDevicesCheck,
  cgroupsCheck,
  networkCheck,
  resourcesCheck,
  settingsCheck,
  portsCheck,
  internalRoutesCheck,
  imagesCheck,
  databaseCheck,
  quarantineCheck,
  archiveCheck,
  objectStoreCheck,
  certificateCheck,
  serviceCheck,
];

/** Runs every check concurrently. A check that throws becomes a failed finding. */
export async function examine(): Promise<Finding[]> {
  const config = configOrProblems();
  if (Array.isArray(config)) return config;
  const service = await runningService(servicePaths(config.dataDir).record);
  const found = await Promise.all(
    CHECKS.map(({ name, run }) =>
      findingsOf(name, () => run({ config, service }), 'fix the other findings first'),
    ),
  );
  return found.flat();
}

function configOrProblems(): Config | Finding[] {
  try {
    return loadServiceConfig();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((problem) => fail('settings', problem, 'see docs/configuration.md'));
  }
}
