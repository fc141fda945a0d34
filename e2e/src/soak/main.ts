/** `npm run soak -- --minutes N --seed S`: uses a service at random, then fails if anything is left over. */

import { parseArgs } from 'node:util';
import { soak } from './soak.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed);
if (!(minutes > 0) || !Number.isInteger(seed)) {
  console.error('usage: npm run soak -- --minutes 10 --seed 1');
  process.exit(2);
}
const problems = await soak({ minutes, seed, report: console.log });
for (const problem of problems) console.error(problem);
console.log(problems.length === 0 ? 'nothing is left over' : `${problems.length} problem(s)`);
process.exitCode = problems.length === 0 ? 0 : 1;
