/** `npm run kvm-lab`: shows svc on KVM and cgroup v2 in an emulated machine. See README.md. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, stripVTControlCharacters } from 'node:util';
import { loadConfig } from '@svc/config';
import { buildImage } from '@svc/microvm';
import { interruptSignal } from '@svc/service-kit/process';
import { writeCheckoutDisk } from './checkout-disk.ts';
import { CHECKS, type Check, PREAMBLE } from './checks.ts';
import { Machine } from './machine.ts';
import { buildRootDisk } from './root-disk.ts';
import { mustRun } from './run-step.ts';

const TEMPLATE = 'standard';
/** The longest time of one check. */
const CHECK_MS = 15 * 60_000;
const EVIDENCE_LINES = 8;

const checkout = fileURLToPath(new URL('../../../', import.meta.url));
const { values } = parseArgs({
  options: { keep: { type: 'boolean', default: false }, only: { type: 'string', default: '' } },
});
const chosen = CHECKS.filter(({ title }) => title.includes(values.only));
const interrupted = interruptSignal();
try {
  process.exitCode = await runLab(values.keep, interrupted);
} catch (error) {
  if (!interrupted.aborted) throw error;
  console.log('\nended before the last check');
  process.exitCode = 1;
}

async function runLab(keep: boolean, signal: AbortSignal): Promise<number> {
  const work = await mkdtemp(join(tmpdir(), 'svc-kvm-lab-'));
  let machine: Machine | undefined;
  try {
    machine = await boot(work, signal);
    let failed = 0;
    for (const check of chosen) {
      if (!(await holds(machine, check, signal))) failed += 1;
    }
    if (keep) {
      console.log(`\nlog in with: ${machine.login}\nCtrl-C ends the machine`);
      await sleep(24 * 60 * 60_000, undefined, { signal }).catch(ignoreAbort);
    }
    console.log(`\n${chosen.length - failed} checks passed, ${failed} failed`);
    return failed === 0 ? 0 : 1;
  } finally {
    await machine?.stop();
    await rm(work, { recursive: true, force: true });
  }
}

async function boot(work: string, signal: AbortSignal): Promise<Machine> {
  const { imageDir, kvmProbeSeconds } = loadConfig();
  const kvmProbeMs = kvmProbeSeconds * 1000;
  const show = (title: string) => console.log(`-- ${title}`);
  show('building the root disk of the machine, unless it is cached');
  const root = await buildRootDisk(checkout, join(imageDir, '../kvm-lab'), signal);
  show(`building the image ${TEMPLATE}, unless it is cached`);
  await buildImage(
    { template: TEMPLATE, imageDir, kvmProbeMs, onProgress: () => undefined },
    signal,
  );
  show('building the Debian package');
  const built = join(work, 'release');
  const release = join(checkout, 'scripts/release/main.ts');
  await mustRun(process.execPath, [release, '--output', built, 'deb'], signal);
  show('writing the checkout to a disk');
  const key = join(work, 'key');
  await mustRun('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key], signal);
  const publicKey = `${key}.pub`;
  const options = { checkout, imageDir, template: TEMPLATE, built, publicKey, work };
  const checkoutDisk = await writeCheckoutDisk(options, signal);
  show('booting the machine');
  return Machine.boot(root, checkoutDisk, work, signal);
}

/** Runs a check and prints its outcome, its duration and its evidence. */
async function holds(machine: Machine, check: Check, signal: AbortSignal): Promise<boolean> {
  const started = performance.now();
  const deadline = AbortSignal.timeout(CHECK_MS);
  let outcome: { status: number | null; output: string };
  try {
    outcome = await machine.run(PREAMBLE + check.script, AbortSignal.any([signal, deadline]));
  } catch (error) {
    signal.throwIfAborted();
    if (!deadline.aborted) throw error;
    outcome = { status: null, output: `took longer than ${CHECK_MS / 60_000} minutes` };
  }
  const passed = outcome.status === 0;
  const seconds = Math.round((performance.now() - started) / 1000);
  console.log(`\n${passed ? 'ok    ' : 'FAILED'} ${check.title} (${seconds} s)`);
  const lines = stripVTControlCharacters(outcome.output).trim().split('\n');
  for (const line of passed ? lines.slice(-EVIDENCE_LINES) : lines) console.log(`       ${line}`);
  return passed;
}

function ignoreAbort(error: unknown): void {
  if (!(error instanceof Error && error.name === 'AbortError')) throw error;
}
