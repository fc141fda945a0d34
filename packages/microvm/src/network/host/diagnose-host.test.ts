import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { run } from '../command.ts';
import { removeSlots } from '../slots/remove-slots.ts';
import { runIn } from '../testing/run-in.ts';
import { diagnoseHost, dropsByDefault } from './diagnose-host.ts';

const netns = `lab-${randomBytes(4).toString('hex')}`;

beforeEach(async () => {
  await run('ip', ['netns', 'add', netns]);
});

afterEach(async () => {
  await removeSlots([netns]);
});

test('filters that drop sandboxes’ packets by default are found, as the kernel lists them', async () => {
  await runIn(
    netns,
    'nft',
    ['-f', '-'],
    `table ip filter {
  chain FORWARD { type filter hook forward priority filter; policy drop; }
  chain OUTPUT { type filter hook output priority filter; policy drop; }
  chain DOCKER-USER { }
}
table inet firewalld {
  chain filter_INPUT { type filter hook input priority filter; policy drop; }
  chain filter_FORWARD { type filter hook forward priority filter; policy accept; }
}
table ip6 filter {
  chain FORWARD { type filter hook forward priority filter; policy drop; }
}
`,
  );
  const chains = dropsByDefault(await runIn(netns, 'nft', ['-j', 'list', 'chains']));
  expect(chains.map(({ family, name }) => `${family} ${name}`)).toEqual([
    'ip FORWARD',
    'inet filter_INPUT',
  ]);
});

test('a machine without any filter has nothing in the way', async () => {
  expect(dropsByDefault(await runIn(netns, 'nft', ['-j', 'list', 'chains']))).toEqual([]);
});

test('this machine can be looked at', async () => {
  for (const finding of await diagnoseHost()) expect(finding.message).toMatch(/\.$/);
});
