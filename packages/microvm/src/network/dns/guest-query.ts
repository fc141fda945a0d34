import { type DecodedPacket, decode, encode, type OptAnswer, type Question } from 'dns-packet';
import { isOtherOpcode, RCODE } from './dns-codes.ts';
import { isPrivateName } from './private-names.ts';

const HEADER_BYTES = 12;
const MAX_QUERY_BYTES = 1024;
const PLAIN_UDP_BYTES = 512;
/** Fits into every path without fragmentation. */
const MAX_UDP_BYTES = 1232;

/** Record types that are forwarded to an upstream server. */
const FORWARDED: ReadonlySet<string> = new Set([
  ...['A', 'CNAME', 'MX', 'TXT', 'SRV', 'NS', 'PTR', 'CAA', 'SOA'],
]);
/** Sandboxes have no IPv6, and service bindings (types 64 and 65) could carry addresses past the filter. */
const ANSWERED_EMPTY: ReadonlySet<string> = new Set(['AAAA', 'UNKNOWN_64', 'UNKNOWN_65']);

/** A parsed query from a guest. */
export interface GuestQuery {
  readonly id: number;
  readonly question: Question;
  /** Whether the query uses EDNS, and so must its answer. */
  readonly edns: boolean;
  /** Maximum size of an answer by UDP, in bytes. */
  readonly udpBytes: number;
  /** Response code of an answer that needs no upstream server. */
  readonly rcode?: number;
}

/** Parses a query. Undefined when it must not be answered at all. Never throws. */
export function parseGuestQuery(message: Buffer): GuestQuery | undefined {
  if (message.length < HEADER_BYTES || message.length > MAX_QUERY_BYTES) return undefined;
  try {
    return parse(message);
  } catch {
    return undefined; // Not a DNS message: no resolver waits for an answer.
  }
}

function parse(message: Buffer): GuestQuery | undefined {
  const packet = decode(message);
  const question = packet.questions?.[0];
  if (packet.flag_qr || question === undefined) return undefined;
  const opt = packet.additionals?.find((record): record is OptAnswer => record.type === 'OPT');
  const rcode = localRcode(packet, question, message);
  return {
    id: packet.id ?? 0,
    question,
    edns: opt !== undefined,
    udpBytes: Math.min(MAX_UDP_BYTES, Math.max(PLAIN_UDP_BYTES, opt?.udpPayloadSize ?? 0)),
    ...(rcode === undefined ? {} : { rcode }),
  };
}

function localRcode(packet: DecodedPacket, question: Question, raw: Buffer): number | undefined {
  if (isOtherOpcode(packet.flags)) return RCODE.notImplemented;
  if (packet.questions?.length !== 1 || !isUnambiguous(question, raw)) return RCODE.formatError;
  if (question.class !== 'IN') return RCODE.refused;
  if (isPrivateName(question.name)) return RCODE.nameError;
  if (ANSWERED_EMPTY.has(question.type)) return RCODE.noError;
  return FORWARDED.has(question.type) ? undefined : RCODE.notImplemented;
}

/**
 * Whether the question is unchanged after decoding and encoding. Otherwise the upstream server could see a different
 * name than this filter: by compression, dots within a label, or bytes outside ASCII.
 */
function isUnambiguous(question: Question, raw: Buffer): boolean {
  const written = encode({ type: 'query', questions: [question] }).subarray(HEADER_BYTES);
  const asked = raw.subarray(HEADER_BYTES, HEADER_BYTES + written.length);
  return written.equals(asked) && /^[\x21-\x7e]*$/.test(question.name);
}
