import { randomInt } from 'node:crypto';
import { withDeadline } from '@svc/service-kit/concurrency';
import { type DecodedPacket, decode, encode, type Question, RECURSION_DESIRED } from 'dns-packet';
import { RCODE, rcodeOf } from './dns-codes.ts';
import { exchangeByTcp } from './exchange-by-tcp.ts';
import { exchangeByUdp } from './exchange-by-udp.ts';
import { parseServer, type UpstreamServer } from './upstream-servers.ts';

const ATTEMPTS = 3;
const ATTEMPT_MS = 1400;
/** Less than 5 s, after which a guest's resolver gives up. */
const TOTAL_MS = 4300;

/**
 * Queries one server after another until one gives a usable answer.
 *
 * @throws Error when there is no usable answer within 4.3 s and three attempts
 */
export async function askUpstream(
  servers: readonly string[],
  question: Question,
  signal: AbortSignal,
): Promise<DecodedPacket> {
  const usable = servers.flatMap((text) => parseServer(text) ?? []);
  const overall = withDeadline(signal, TOTAL_MS);
  let failure: unknown = new Error('no DNS server is configured on this machine');
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
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
  const signal = withDeadline(overall, ATTEMPT_MS);
  const id = randomInt(0x10000);
  const query = encode({ type: 'query', id, flags: RECURSION_DESIRED, questions: [question] });
  const isAnswer = (message: Buffer) => answers(message, id, question);
  const first = decode(await exchangeByUdp(server, query, isAnswer, signal));
  const answer = first.flag_tc
    ? decode(await exchangeByTcp(server, query, isAnswer, signal))
    : first;
  const rcode = rcodeOf(answer.flags);
  if (rcode === RCODE.noError || rcode === RCODE.nameError) return answer;
  throw new Error(`DNS server ${server.address} answered with code ${rcode}`);
}

/** Whether a message answers exactly this question. */
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
    return false; // Not a DNS message.
  }
}
