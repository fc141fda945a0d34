import { expect, test } from 'vitest';
import { parseProxyHeader } from './proxy-header.ts';

const SIGNATURE = '0d0a0d0a000d0a515549540a';
const V4 = 'cb007107 0a000005 d431 20fb';
const V6 = '20010db8000000000000000000000007 20010db8000000000000000000000001 d431 20fb';
const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
const binary = (rest: string) => hex(SIGNATURE + rest);

test.each([
  ['version 1, IPv4', Buffer.from('PROXY TCP4 203.0.113.7 10.0.0.5 54321 8443\r\n'), '203.0.113.7'],
  [
    'version 1, IPv6',
    Buffer.from('PROXY TCP6 2001:db8::7 2001:db8::1 54321 8443\r\n'),
    '2001:db8::7',
  ],
  ['version 1, unknown', Buffer.from('PROXY UNKNOWN\r\n'), undefined],
  ['version 1, unknown with more', Buffer.from('PROXY UNKNOWN ffff::1 x 1 2\r\n'), undefined],
  ['version 2, IPv4', binary(`21 11 000c ${V4}`), '203.0.113.7'],
  ['version 2, IPv6', binary(`21 21 0024 ${V6}`), '2001:db8::7'],
  ['version 2 with further fields', binary(`21 11 0011 ${V4} 04 0002 0000`), '203.0.113.7'],
  ['version 2, local', binary('20 00 0000'), undefined],
  ['version 2, local with addresses', binary(`20 11 000c ${V4}`), undefined],
  ['version 2, a Unix socket', binary(`21 31 0004 00000000`), undefined],
  ['version 2, a datagram', binary(`21 12 000c ${V4}`), undefined],
])('%s', (_which, header, address) => {
  const followed = Buffer.concat([header, Buffer.from('GET / HTTP/1.1\r\n')]);
  expect(parseProxyHeader(followed)).toEqual({ length: header.length, address });
  for (let length = 0; length < header.length; length += 1) {
    expect(parseProxyHeader(header.subarray(0, length))).toBeUndefined();
  }
});

test.each([
  ['a request', Buffer.from('GET / HTTP/1.1\r\n')],
  ['a TLS handshake', hex('160301')],
  ['another protocol with the same start', Buffer.from('PROXX')],
  ['a line without an end', Buffer.from(`PROXY UNKNOWN ${'x'.repeat(100)}`)],
  ['a line that is too long', Buffer.from(`PROXY UNKNOWN ${'x'.repeat(100)}\r\n`)],
  ['a name instead of an address', Buffer.from('PROXY TCP4 example.com 10.0.0.5 1 2\r\n')],
  ['two addresses in one', Buffer.from('PROXY TCP4 203.0.113.7,1.1.1.1 10.0.0.5 1 2\r\n')],
  ['a line without addresses', Buffer.from('PROXY TCP4\r\n')],
  ['an unknown version', binary('11 11 000c')],
  ['an unknown command', binary('22 11 000c')],
  ['too few bytes for the addresses', binary('21 21 000c 000000000000000000000000')],
])('%s is no header', (_which, bytes) => {
  expect(() => parseProxyHeader(bytes)).toThrow(/PROXY header/);
});
