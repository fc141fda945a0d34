import { readFile } from 'node:fs/promises';
import { GUEST_LINK } from '@svc/contract';
import { expect, test } from 'vitest';

const FILES = new URL('../../../../images/standard/rootfs/usr/lib/svc/', import.meta.url);
const { guest, gateway, prefixLength, gatewayMac, guestPorts } = GUEST_LINK;

test('the boot script configures the addresses of the guest link', async () => {
  const lines = (await readFile(new URL('boot', FILES), 'utf8')).split('\n');
  expect(lines.filter((line) => /\b\d+\.\d+\.\d+\.\d+\b/.test(line))).toEqual([
    `ip address add ${guest}/${prefixLength} dev eth0`,
    `ip neighbour replace ${gateway} lladdr ${gatewayMac} nud permanent dev eth0`,
    `ip route add default via ${gateway}`,
  ]);
});

test("the guest's daemon listens on the channel port", async () => {
  const lines = (await readFile(new URL('guestd', FILES), 'utf8')).split('\n');
  expect(lines.filter((line) => line.startsWith('PORT ='))).toEqual([
    `PORT = ${guestPorts.channel}`,
  ]);
});
