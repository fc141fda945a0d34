import { GUEST_LINK } from '@svc/contract';

/** The fields of a frame that a test sends in place of a guest. Unset fields have valid values. */
export interface Ipv4Frame {
  readonly destination: string;
  readonly source?: string;
  readonly sourceMac?: string;
  readonly destinationMac?: string;
  /** Protocol number. Default: 17 (UDP). */
  readonly protocol?: number;
  /** The data after the IPv4 header. */
  readonly payload: Buffer;
  /** Flags and fragment offset, as encoded in the header. */
  readonly fragment?: number;
  /** Time to live: the number of hops, of which the slot's namespace is the first. Default: 64. */
  readonly ttl?: number;
  /** IPv4 options. Their size must be a multiple of four bytes. */
  readonly options?: Buffer;
}

const IPV4 = 0x0800;
const UDP = 17;

/** An Ethernet frame with an IPv4 packet. Unset addresses are those of the guest. */
export function ipv4Frame(frame: Ipv4Frame): Buffer {
  const options = frame.options ?? Buffer.alloc(0);
  const header = Buffer.alloc(20 + options.length);
  header[0] = 0x40 | (header.length / 4);
  header.writeUInt16BE(header.length + frame.payload.length, 2);
  header.writeUInt16BE(frame.fragment ?? 0x4000, 6);
  header[8] = frame.ttl ?? 64;
  header[9] = frame.protocol ?? UDP;
  ipv4Bytes(frame.source ?? GUEST_LINK.guest).copy(header, 12);
  ipv4Bytes(frame.destination).copy(header, 16);
  options.copy(header, 20);
  header.writeUInt16BE(checksum(header), 10);
  return ethernetFrame(IPV4, Buffer.concat([header, frame.payload]), frame);
}

/** An Ethernet frame of any type. */
export function ethernetFrame(
  type: number,
  payload: Buffer,
  macs: { sourceMac?: string; destinationMac?: string } = {},
): Buffer {
  const ethertype = Buffer.alloc(2);
  ethertype.writeUInt16BE(type);
  return Buffer.concat([
    macBytes(macs.destinationMac ?? GUEST_LINK.gatewayMac),
    macBytes(macs.sourceMac ?? GUEST_LINK.guestMac),
    ethertype,
    payload,
  ]);
}

/** A UDP datagram without a checksum, which IPv4 allows. */
export function udp(
  sourcePort: number,
  destinationPort: number,
  data: Buffer = Buffer.alloc(0),
): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt16BE(sourcePort, 0);
  header.writeUInt16BE(destinationPort, 2);
  header.writeUInt16BE(8 + data.length, 4);
  return Buffer.concat([header, data]);
}

/** A TCP segment without data. */
export interface TcpSegment {
  readonly destination: string;
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly sequence: number;
  readonly acknowledgement?: number;
  readonly flags: number;
}

export const TCP_FLAGS = { syn: 0x02, rst: 0x04, ack: 0x10 } as const;

/** The bytes of a TCP segment from the guest. Its checksum covers the destination address. */
export function tcp(fields: TcpSegment): Buffer {
  const segment = Buffer.alloc(20);
  segment.writeUInt16BE(fields.sourcePort, 0);
  segment.writeUInt16BE(fields.destinationPort, 2);
  segment.writeUInt32BE(fields.sequence, 4);
  segment.writeUInt32BE(fields.acknowledgement ?? 0, 8);
  segment.writeUInt16BE(0x5000 | fields.flags, 12);
  segment.writeUInt16BE(1024, 14);
  const pseudo = Buffer.from([0, 6, 0, segment.length]);
  const addresses = Buffer.concat([ipv4Bytes(GUEST_LINK.guest), ipv4Bytes(fields.destination)]);
  segment.writeUInt16BE(checksum(Buffer.concat([addresses, pseudo, segment])), 16);
  return segment;
}

/** The first segment of a TCP connection. */
export function tcpSyn(destination: string, sourcePort: number, destinationPort: number): Buffer {
  return tcp({ destination, sourcePort, destinationPort, sequence: 1, flags: TCP_FLAGS.syn });
}

/** An echo request (ping). */
export function ping(id: number): Buffer {
  const message = Buffer.from([8, 0, 0, 0, id >> 8, id & 0xff, 0, 1]);
  message.writeUInt16BE(checksum(message), 2);
  return message;
}

/** An ARP message: 1 is a request, 2 is a reply. */
export function arp(operation: 1 | 2, senderMac: string, sender: string, target: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, 1, 8, 0, 6, 4, 0, operation]),
    macBytes(senderMac),
    ipv4Bytes(sender),
    macBytes('00:00:00:00:00:00'),
    ipv4Bytes(target),
  ]);
}

/** Parses a received frame. Undefined when it is not IPv4. */
export function readIpv4(frame: Buffer) {
  if (frame.readUInt16BE(12) !== IPV4) return undefined;
  const headerBytes = ((frame[14] ?? 0) & 0x0f) * 4;
  return {
    source: [...frame.subarray(26, 30)].join('.'),
    destination: [...frame.subarray(30, 34)].join('.'),
    protocol: frame[23] ?? 0,
    payload: frame.subarray(14 + headerBytes, 14 + frame.readUInt16BE(16)),
  };
}

function ipv4Bytes(address: string): Buffer {
  return Buffer.from(address.split('.').map(Number));
}

function macBytes(address: string): Buffer {
  return Buffer.from(address.replaceAll(':', ''), 'hex');
}

function checksum(data: Buffer): number {
  let sum = 0;
  for (let offset = 0; offset < data.length; offset += 2) sum += data.readUInt16BE(offset);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
