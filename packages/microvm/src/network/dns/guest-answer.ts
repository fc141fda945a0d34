import { isPublicAddress } from '@svc/service-kit/addresses';
import {
  type Answer,
  type DecodedPacket,
  encode,
  type OptAnswer,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import { RCODE, rcodeOf } from './dns-codes.ts';
import type { GuestQuery } from './guest-query.ts';
import { MAX_FRAMED_BYTES } from './tcp-frames.ts';

const MAX_RECORDS = 128;
const FLAGS = RECURSION_DESIRED | RECURSION_AVAILABLE;
const EDNS: OptAnswer = {
  type: 'OPT',
  name: '.',
  udpPayloadSize: 1232,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: 0,
  flag_do: false,
  options: [],
};

/** An answer without records. */
export function emptyAnswer(query: GuestQuery, rcode: number): Buffer {
  return write(query, rcode, [], []);
}

/**
 * The part of an upstream answer that a guest may see: records of the requested type and aliases. Addresses that are
 * not public and additional records are removed.
 */
export function filteredAnswer(query: GuestQuery, upstream: DecodedPacket): Buffer {
  const answers = (upstream.answers ?? []).slice(0, MAX_RECORDS);
  const kept = answers.filter((record) => isWanted(query, record));
  const authorities = (upstream.authorities ?? []).filter((record) => record.type === 'SOA');
  return write(
    query,
    rcodeOf(upstream.flags),
    kept,
    kept.length > 0 ? [] : authorities.slice(0, 1),
  );
}

/** The answer to send by UDP. A truncated answer replaces one that is too long, so that the guest retries over TCP. */
export function fitToUdp(query: GuestQuery, answer: Buffer): Buffer {
  if (answer.length <= query.udpBytes) return answer;
  return write(query, RCODE.noError, [], [], TRUNCATED_RESPONSE);
}

/**
 * The answer to send by TCP. It may have outgrown a message, since it is written without the compression of the upstream
 * answer. SERVFAIL replaces it: a client would take an answer with some of the records for the whole, as it has no other
 * transport to get the rest.
 */
export function fitToTcp(query: GuestQuery, answer: Buffer): Buffer {
  return answer.length <= MAX_FRAMED_BYTES ? answer : emptyAnswer(query, RCODE.serverFailure);
}

function isWanted(query: GuestQuery, record: Answer): boolean {
  if (!('class' in record) || record.class !== 'IN') return false;
  if (record.type === 'CNAME' || record.type === 'DNAME') return true;
  if (record.type !== query.question.type) return false;
  return record.type !== 'A' || isPublicAddress(record.data);
}

function write(
  query: GuestQuery,
  rcode: number,
  answers: Answer[],
  authorities: Answer[],
  moreFlags = 0,
): Buffer {
  return encode({
    type: 'response',
    id: query.id,
    flags: FLAGS | moreFlags | rcode,
    questions: [query.question],
    answers,
    authorities,
    additionals: query.edns ? [EDNS] : [],
  });
}
