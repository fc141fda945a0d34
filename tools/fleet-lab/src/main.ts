/** `npm run fleet-lab`: breaks a fleet in every way of faults.ts under load, and reports what its customers noticed. See README.md. */

import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { callersEnvironment, interruptSignal, runSvc, until } from '@svc/service-driver';
import { CUSTOMER_SCRIPT, Customer } from './customer.ts';
import { FAULTS, type Fault, versionFaults } from './faults.ts';
import { FleetLab } from './fleet-lab.ts';

const SIZE = {
  controlPlanes: 2,
  runtimeHosts: 2,
  workers: 3,
  hasStandby: true,
  workerDiskMib: 6144,
};
const CUSTOMERS = 2;
const TASKS_AFTER = 2;
const RECOVERY = { deadlineMs: 180_000, intervalMs: 250 };

const { values } = parseArgs({
  options: { only: { type: 'string' }, previous: { type: 'string' } },
});
const previous = values.previous === undefined ? undefined : resolve(values.previous);
const faults = previous === undefined ? FAULTS : [...FAULTS, ...versionFaults(previous)];
const chosen = faults.filter(({ name }) => values.only === undefined || name.includes(values.only));

// Everything is disposed of on the way out, also after Ctrl-C.
const signal = interruptSignal();

if (previous !== undefined) await requireImage(previous);
console.log('-- starting the fleet');
// The version before may know nothing of the PROXY protocol.
const size = { ...SIZE, usesProxyProtocol: previous === undefined };
await using lab = await FleetLab.start(size, CUSTOMER_SCRIPT);
const client = await lab.signUp();
await using customers = new AsyncDisposableStack();
const working: Customer[] = [];
while (working.length < CUSTOMERS) working.push(customers.use(await Customer.start(client)));
await tasksDone('each customer has had a task done', 1);
let [survived, failed] = [0, 0];
for (const fault of chosen) {
  if (signal.aborted) break;
  if (await survives(fault)) survived += 1;
  else failed += 1;
}
if (signal.aborted) console.log('\nended before the last fault');
console.log(`\n${survived} faults survived, ${failed} not`);
process.exitCode = failed === 0 ? 0 : 1;

/** A machine of the lab has no network with which its worker could build an image. */
async function requireImage(checkout: string): Promise<void> {
  const context = { env: callersEnvironment(), launcher: [], checkout };
  const { output } = await runSvc(context, ['image', 'list']);
  if (/^standard .* current/m.test(output)) return;
  const build = `(cd ${checkout} && node apps/cli/bin/svc.js image build standard)`;
  throw new Error(`the version before has no image yet; build it with: ${build}\n${output}`);
}

/** Runs a fault under load. Prints and tells whether nothing was lost, nothing came twice, and all go on. */
async function survives(fault: Fault): Promise<boolean> {
  for (const customer of working) customer.takeLongestGapMs();
  let problems: string[];
  try {
    await fault.strike(lab, working);
    await sleep(fault.seconds * 1000, undefined, { signal });
    await named(fault);
    await lab.network.heal();
    await fault.mend(lab);
    await tasksDone(`customers go on after: ${fault.name}`, TASKS_AFTER);
    problems = working.flatMap((customer) => customer.problems(lab));
  } catch (error) {
    problems = [String(error)];
  }
  const gap = Math.max(...working.map((customer) => customer.takeLongestGapMs())) / 1000;
  console.log(
    `${problems.length === 0 ? 'ok  ' : 'FAIL'} ${fault.name}: longest wait for a task ${gap.toFixed(1)} s`,
  );
  for (const problem of problems) console.log(`     ${problem}`);
  return problems.length === 0;
}

/** Waits until the doctor names the fault, as seen from the machine of the last control plane. */
async function named({ name, finding }: Fault): Promise<void> {
  if (finding === undefined) return;
  const isNamed = async () => {
    signal.throwIfAborted();
    const examined = await lab.controlPlanes.at(-1)?.command(['doctor', '--fleet']);
    return finding.test(examined?.output ?? '');
  };
  await until(`svc doctor --fleet names: ${name}`, isNamed, RECOVERY);
}

async function tasksDone(condition: string, more: number): Promise<void> {
  const before = working.map(({ acknowledged }) => acknowledged);
  const done = async () => {
    signal.throwIfAborted();
    return working.every(({ acknowledged }, n) => acknowledged >= (before[n] ?? 0) + more);
  };
  await until(condition, done, RECOVERY);
}
