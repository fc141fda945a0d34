import { type Config, ConfigError, loadConfig } from '@svc/config';
import { servicePlaces } from '../service/places.ts';
import { runningService } from '../service/service-record.ts';
import { accelerationCheck } from './checks/acceleration.ts';
import { certificateCheck } from './checks/certificate.ts';
import { cgroupsCheck } from './checks/cgroups.ts';
import { databaseCheck } from './checks/database.ts';
import { environmentCheck } from './checks/environment.ts';
import { imagesCheck } from './checks/images.ts';
import { networkCheck } from './checks/network.ts';
import { nodeCheck } from './checks/node.ts';
import { portsCheck } from './checks/ports.ts';
import { programsCheck } from './checks/programs.ts';
import { qemuCheck } from './checks/qemu.ts';
import { roomCheck } from './checks/room.ts';
import { rootCheck } from './checks/root.ts';
import { serviceCheck } from './checks/service.ts';
import { type Check, type Circumstances, type Finding, fail } from './finding.ts';

/** In the order of the report: the machine first, then what is built on it. */
const CHECKS: readonly Check[] = [
  nodeCheck,
  rootCheck,
  programsCheck,
  qemuCheck,
  accelerationCheck,
  cgroupsCheck,
  networkCheck,
  roomCheck,
  environmentCheck,
  portsCheck,
  imagesCheck,
  databaseCheck,
  certificateCheck,
  serviceCheck,
];

/** Looks at everything the service needs. Never throws for what a check finds. */
export async function examine(): Promise<Finding[]> {
  const config = configOrProblems();
  if (Array.isArray(config)) return config;
  const service = await runningService(servicePlaces(config.dataDir).record);
  const found = await Promise.all(CHECKS.map((check) => runCheck(check, { config, service })));
  return found.flat();
}

async function runCheck(check: Check, circumstances: Circumstances): Promise<readonly Finding[]> {
  try {
    return [await check.run(circumstances)].flat();
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    return [fail(check.name, `could not be checked: ${what}`, 'mend the other findings first')];
  }
}

function configOrProblems(): Config | Finding[] {
  try {
    return loadConfig();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((problem) => fail('settings', problem, 'see docs/configuration.md'));
  }
}
