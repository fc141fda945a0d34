import { randomBytes } from 'node:crypto';
import { runProgram } from '@svc/service-kit/process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runInNetns } from '../../../test/network/run-in-netns.ts';
import { removeSlots } from '../slots/remove-slots.ts';
import { diagnoseHost, dropsByDefault } from './diagnose-host.ts';

const netns = `svctest-${randomBytes(4).toString('hex')}`;

beforeEach(async () => {
  await runProgram('ip', ['netns', 'add', netns]);
});

afterEach(async () => {
  await removeSlots([{ netns }]);
});

test('finds filters of the kernel that drop the packets of sandboxes by default', async () => {
  await runInNetns(
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
  const chains = dropsByDefault(await runInNetns(netns, 'nft', ['-j', 'list', 'chains']));
  expect(chains.map(({ family, name }) => `${family} ${name}`)).toEqual([
    'ip FORWARD',
    'inet filter_INPUT',
  ]);
});

test('finds nothing on a machine without filters', async () => {
  expect(dropsByDefault(await runInNetns(netns, 'nft', ['-j', 'list', 'chains']))).toEqual([]);
});

test('diagnoses this machine with complete sentences', async () => {
  for (const finding of await diagnoseHost()) expect(finding.message).toMatch(/\.$/);
});
