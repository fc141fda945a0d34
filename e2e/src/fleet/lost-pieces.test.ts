import { CUSTOMER_SCRIPT, Customer, FleetLab } from '@svc/fleet-lab';
import type { SvcClient } from '@svc/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { leftoversOf } from '../../test/machine/footprint.ts';
import { instanceOf } from '../../test/machine/instance.ts';

const TIMEOUT = { timeout: 600_000 };
const WAIT = { timeout: 240_000, interval: 500 };

let lab: FleetLab;
let client: SvcClient;
let customer: Customer;

beforeAll(async () => {
  lab = await FleetLab.start({ controlPlanes: 2, runtimeHosts: 2, workers: 2 }, CUSTOMER_SCRIPT);
  client = await lab.signUp();
  customer = await Customer.start(client);
}, TIMEOUT.timeout);

afterAll(async () => {
  await customer?.[Symbol.asyncDispose]();
  if (lab !== undefined) await leavesNothing();
}, TIMEOUT.timeout);

/** Disposes of the lab when it is hardest: the VMs are those of a crashed worker, and no control plane is there to ask. */
async function leavesNothing(): Promise<void> {
  const crashWorker = async () => {
    const { vm_id: id } = await client.sandboxes.create({ template: 'standard' });
    const worker = await lab.workerOf(id);
    for (const piece of [worker, ...lab.controlPlanes]) await piece.end('SIGKILL');
    return instanceOf(worker.dataDir);
  };
  const crashed = await crashWorker().finally(() => lab[Symbol.asyncDispose]());
  expect(await leftoversOf(crashed)).toEqual([]);
}

/** Waits until the customer has had two more tasks done, and checks that nothing was lost and nothing came twice. */
async function goesOn(): Promise<void> {
  const before = customer.acknowledged;
  await expect
    .poll(() => customer.problems(lab).length > 0 || customer.acknowledged >= before + 2, WAIT)
    .toBe(true);
  expect(customer.problems(lab)).toEqual([]);
}

/** What the doctor says of the fleet, seen from the machine of a control plane that nothing happens to. */
async function findings(): Promise<string> {
  const { output } = await (lab.controlPlanes[1] ?? expect.unreachable()).command([
    'doctor',
    '--fleet',
  ]);
  return output;
}

test('a session outlives its control plane and its runtime host', TIMEOUT, async () => {
  await goesOn();
  for (const [piece] of [lab.controlPlanes, lab.runtimeHosts]) {
    await piece?.end('SIGKILL');
    await goesOn();
    if (piece === lab.controlPlanes[0]) {
      await expect
        .poll(findings, WAIT)
        .toMatch(/warn +control plane +\S+ ended without a shutdown/);
    }
    await piece?.start();
  }
});

test(
  'a session goes on elsewhere when its worker is cut off, and only there',
  TIMEOUT,
  async () => {
    const { vm_id: lost } = await customer.sandbox();
    const worker = await lab.workerOf(lost);
    await lab.network.cut(worker.machine, 'both');
    await goesOn();
    expect((await customer.sandbox()).vm_id).not.toBe(lost);
    const { name } = worker.machine;
    expect(await findings()).toMatch(
      new RegExp(`fail +worker +${name} is silent since .*does not answer`),
    );

    await lab.network.heal();
    await expect.poll(() => worker.sandboxes(), WAIT).toEqual([]);
    await expect.poll(findings, WAIT).toMatch(/ok +workers +2, with/);
    await goesOn();
  },
);
