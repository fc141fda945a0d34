import { expect, test } from 'vitest';
import { parseServer, systemUpstreams } from './upstream-servers.ts';

test.each([
  ['192.0.2.1', '192.0.2.1', 53],
  ['192.0.2.1:5353', '192.0.2.1', 5353],
  ['2001:db8::1', '2001:db8::1', 53],
  ['[2001:db8::1]', '2001:db8::1', 53],
  ['[2001:db8::1]:5353', '2001:db8::1', 5353],
])('parses %s', (text, address, port) => {
  expect(parseServer(text)).toEqual({ address, port });
});

test.each(['', 'dns.example', '192.0.2.1:', '192.0.2.1:0', '192.0.2.1:65536', '[192.0.2]:53'])(
  'rejects %j',
  (text) => {
    expect(parseServer(text)).toBeUndefined();
  },
);

test('parses the servers of this machine', () => {
  const servers = systemUpstreams()();
  expect(servers.map(parseServer)).not.toContain(undefined);
});
