import { type DecodedPacket, decode, encode, type OptAnswer, type Question } from 'dns-packet';
import { isOtherOpcode, RCODE } from './dns-codes.ts';
import { isPrivateName } from './private-names.ts';

const HEADER_BYTES = 12;
const MAX_QUERY_BYTES = 1024;
const PLAIN_UDP_BYTES = 512;
/** Fits every path without fragments. */
const MAX_UDP_BYTES = 1232;

/** Types whose answers are worth the way to the upstream server. */
const FORWARDED: ReadonlySet<string> = new Set([
  ...['A', 'CNAME', 'MX', 'TXT', 'SRV', 'NS', 'PTR', 'CAA', 'SOA'],
]);
/** There is no IPv6 here, and service bindings could smuggle addresses past the filter. */
const ANSWERED_EMPTY: ReadonlySet<string> = new Set(['AAAA', 'UNKNOWN_64', 'UNKNOWN_65']);

/** A guest's query that was understood. */
export interface GuestQuery {
  readonly id: number;
  readonly question: Question;
  /** Whether it spoke EDNS, so that its answer must. */
  readonly edns: boolean;
  /** What it takes by UDP, in bytes. */
  readonly udpBytes: number;
  /** The answer that needs no upstream server. */
  readonly rcode?: number;
}

/** Understands one query; undefined for what deserves no answer at all. Never throws. */
export function parseGuestQuery(message: Buffer): GuestQuery | undefined {
  if (message.length < HEADER_BYTES || message.length > MAX_QUERY_BYTES) return undefined;
  try {
    return understand(message);
  } catch {
    return undefined; // Garbage has no sender who waits for an answer.
  }
}

function understand(message: Buffer): GuestQuery | undefined {
  const packet = decode(message);
  const question = packet.questions?.[0];
  if (packet.flag_qr || question === undefined) return undefined;
  const opt = packet.additionals?.find((record): record is OptAnswer => record.type === 'OPT');
  const rcode = verdict(packet, question, message);
  return {
    id: packet.id ?? 0,
    question,
    edns: opt !== undefined,
    udpBytes: Math.min(MAX_UDP_BYTES, Math.max(PLAIN_UDP_BYTES, opt?.udpPayloadSize ?? 0)),
    ...(rcode === undefined ? {} : { rcode }),
  };
}

function verdict(packet: DecodedPacket, question: Question, raw: Buffer): number | undefined {
  if (isOtherOpcode(packet.flags)) return RCODE.notImplemented;
  if (packet.questions?.length !== 1 || !isPlain(question, raw)) return RCODE.formatError;
  if (question.class !== 'IN') return RCODE.refused;
  if (isPrivateName(question.name)) return RCODE.nameError;
  if (ANSWERED_EMPTY.has(question.type)) return RCODE.noError;
  return FORWARDED.has(question.type) ? undefined : RCODE.notImplemented;
}

/**
 * Whether the question says the same after it was read and written again. Compression, dots inside
 * a label and bytes outside ASCII would let the upstream server see another name than we do.
 */
function isPlain(question: Question, raw: Buffer): boolean {
  const written = encode({ type: 'query', questions: [question] }).subarray(HEADER_BYTES);
  const asked = raw.subarray(HEADER_BYTES, HEADER_BYTES + written.length);
  return written.equals(asked) && /^[\x21-\x7e]*$/.test(question.name);
}
