import { expect, test } from 'vitest';
import { isPrivateName } from './private-names.ts';

test.each([
  ...['localhost', 'a.localhost', 'printer.local', 'router.lan', 'metadata.google.internal'],
  ...[
    'METADATA.GOOGLE.INTERNAL.',
    'x.home.arpa',
    '4.3.2.10.in-addr.arpa',
    '1.0.0.127.in-addr.arpa',
  ],
  ...['10.in-addr.arpa', 'in-addr.arpa', '254.169.254.169.in-addr.arpa', '1.0.ip6.arpa'],
  ...['x.8.8.8.8.in-addr.arpa', '8.8.8.in-addr.arpa'],
])('%s is private', (name) => {
  expect(isPrivateName(name)).toBe(true);
});

test.each([
  ...['example.com', 'local.example.com', 'mylocalhost.com', 'internal.dev', '.', 'com'],
  ...['8.8.8.8.in-addr.arpa', 'xlan', 'notlocal'],
])('%s is public', (name) => {
  expect(isPrivateName(name)).toBe(false);
});
