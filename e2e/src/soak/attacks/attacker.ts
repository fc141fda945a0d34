/** The program of {@link AttackerProcess}: attacks from its start until it is told to end, then sends what became of it. */

import { once } from 'node:events';
import { Access } from '../../../test/access.ts';
import type { AttackerOptions } from './attacker-process.ts';
import { ATTACKS, attackUntilEnd } from './attacks.ts';

const options: AttackerOptions = JSON.parse(process.argv[2] ?? '');
const access = new Access(options.address);
const client = access.client(options.apiKey);
const ending = new AbortController();
const context = {
  access,
  attacker: { client, apiKey: options.apiKey },
  victim: { email: options.victimEmail },
  models: { url: options.modelUrl },
  signal: ending.signal,
};
const attacks = Object.entries(ATTACKS).map(async ([name, attack]) => {
  const outcomes = await attackUntilEnd(attack, context);
  return `${name}: ${JSON.stringify(Object.fromEntries(outcomes))}`;
});
await Promise.race([once(process, 'message'), once(process, 'disconnect')]);
ending.abort();
const lines = await Promise.all(attacks);
await client.close();
if (process.connected) process.send?.(lines);
