/**
 * `npm run soak -- --minutes N --seed S [--crashes]`: uses a service at random, which `--crashes` kills now and then.
 * Fails if anything is left over, or not billed to the cent.
 * `npm run soak -- --minutes N --attacks`: one customer attacks the service; prints how much slower another one is served.
 * Fails if anything is left over, or if the other one is refused.
 */

import { parseArgs } from 'node:util';
import { interruptSignal } from '@svc/service-driver';
import { attackSoak } from './attacks/attack-soak.ts';
import { soak } from './soak.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    crashes: { type: 'boolean', default: false },
    attacks: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed);
if (!(minutes > 0) || !Number.isInteger(seed)) {
  console.error('usage: npm run soak -- --minutes 10 --seed 1 [--crashes | --attacks]');
  process.exit(2);
}
// Nothing is left over after Ctrl-C either.
const options = { minutes, report: console.log, signal: interruptSignal() };
const problems = values.attacks
  ? await attackSoak(options)
  : await soak({ ...options, seed, crashes: values.crashes });
for (const problem of problems) console.error(problem);
console.log(
  problems.length === 0
    ? 'nothing is left over, and nothing else is wrong'
    : `${problems.length} problem(s)`,
);
process.exitCode = problems.length === 0 ? 0 : 1;
