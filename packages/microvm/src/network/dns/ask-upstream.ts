import { randomInt } from 'node:crypto';
import { withDeadline } from '@svc/service-kit/concurrency';
import { type DecodedPacket, decode, encode, type Question, RECURSION_DESIRED } from 'dns-packet';
import { RCODE, rcodeOf } from './dns-codes.ts';
import { exchangeByTcp } from './exchange-by-tcp.ts';
import { exchangeByUdp } from './exchange-by-udp.ts';
import { parseServer, type UpstreamServer } from './upstream-servers.ts';

const TRIES = 3;
const TRY_MS = 1400;
/** Below the 5 s after which a guest's resolver gives up. */
const TOTAL_MS = 4300;

/**
 * Asks one server after the other until one gives a usable answer.
 *
 * @throws Error when none did within 4.3 s and three tries.
 */
export async function askUpstream(
  servers: readonly string[],
  question: Question,
  signal: AbortSignal,
): Promise<DecodedPacket> {
  const usable = servers.flatMap((text) => parseServer(text) ?? []);
  const overall = withDeadline(signal, TOTAL_MS);
  let failure: unknown = new Error('no DNS server is configured on this machine');
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const server = usable[attempt % usable.length];
    if (server === undefined) break;
    overall.throwIfAborted();
    try {
      return await askOne(server, question, overall);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

async function askOne(
  server: UpstreamServer,
  question: Question,
  overall: AbortSignal,
): Promise<DecodedPacket> {
  const signal = withDeadline(overall, TRY_MS);
  const id = randomInt(0x10000);
  const query = encode({ type: 'query', id, flags: RECURSION_DESIRED, questions: [question] });
  const isOurs = (message: Buffer) => answers(message, id, question);
  const first = decode(await exchangeByUdp(server, query, isOurs, signal));
  const answer = first.flag_tc ? decode(await exchangeByTcp(server, query, isOurs, signal)) : first;
  const rcode = rcodeOf(answer.flags);
  if (rcode === RCODE.noError || rcode === RCODE.nameError) return answer;
  throw new Error(`DNS server ${server.address} answered with code ${rcode}`);
}

/** Whether a message is the answer to exactly this question. */
function answers(message: Buffer, id: number, question: Question): boolean {
  try {
    const packet = decode(message);
    const asked = packet.questions?.[0];
    return (
      packet.flag_qr &&
      packet.id === id &&
      packet.questions?.length === 1 &&
      asked?.type === question.type &&
      asked.name.toLowerCase() === question.name.toLowerCase()
    );
  } catch {
    return false; // Not a DNS message, so not the answer.
  }
}
