/** The PROXY protocol, in its versions 1 and 2. https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt */

import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** What begins a connection from a load balancer. */
export interface ProxyHeader {
  /** Its bytes, which what the client has sent follows. */
  readonly length: number;
  /** The address of the client. Undefined for a connection of the load balancer's own, such as a health check. */
  readonly address: string | undefined;
}

/** With the end of the line. */
const MOST_TEXT_BYTES = 107;
const TEXT_START = Buffer.from('PROXY ');
const TEXT = /^PROXY (?:UNKNOWN(?: .*)?|TCP[46] (\S+) \S+ \d{1,5} \d{1,5})$/;
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const FIXED_BYTES = 16;
const LENGTH_AT = 14;
/** Bytes of an address, by the family of a TCP connection. */
const ADDRESS_BYTES = new Map([
  [0x11, 4],
  [0x21, 16],
]);
const LOCAL = 0x20;
const PROXIED = 0x21;

/**
 * Reads the header with which a connection begins. Undefined while a part of it is missing.
 * @throws Error when the connection begins with something else
 */
export function parseProxyHeader(bytes: Buffer): ProxyHeader | undefined {
  if (startsLike(bytes, SIGNATURE)) return parseBinary(bytes);
  if (startsLike(bytes, TEXT_START)) return parseText(bytes);
  throw new Error('the connection does not begin with a PROXY header');
}

/** Whether the bytes begin with others, as far as they have arrived. */
function startsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);
  return bytes.subarray(0, length).equals(start.subarray(0, length));
}

function parseText(bytes: Buffer): ProxyHeader | undefined {
  const text = bytes.toString('latin1', 0, MOST_TEXT_BYTES);
  const end = text.indexOf('\r\n');
  if (end === -1 && bytes.length < MOST_TEXT_BYTES) return undefined;
  const [line, address] = TEXT.exec(text.slice(0, Math.max(end, 0))) ?? [];
  const isValid = address === undefined || isIP(address) !== 0;
  if (line === undefined || !isValid) throw new Error('the PROXY header is not valid');
  return { length: end + 2, address };
}

function parseBinary(bytes: Buffer): ProxyHeader | undefined {
  if (bytes.length < FIXED_BYTES) return undefined;
  const [command = 0, family = 0] = bytes.subarray(SIGNATURE.length);
  const length = FIXED_BYTES + bytes.readUInt16BE(LENGTH_AT);
  if (command !== LOCAL && command !== PROXIED) throw new Error('the PROXY header is not valid');
  if (bytes.length < length) return undefined;
  const size = command === PROXIED ? ADDRESS_BYTES.get(family) : undefined;
  if (size === undefined) return { length, address: undefined };
  const address = bytes.subarray(FIXED_BYTES, FIXED_BYTES + size);
  if (length < FIXED_BYTES + 2 * size) throw new Error('the PROXY header is not valid');
  return { length, address: ipaddr.fromByteArray([...address]).toString() };
}
