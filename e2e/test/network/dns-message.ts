import { isIPv4 } from 'node:net';

/** Names and their successive answers. Each query for a name gets its next answer; the last one is repeated. */
export type Zone = Readonly<Record<string, readonly (readonly string[])[]>>;

const TYPE_A = 1;
const TYPE_AAAA = 28;
const HEADER_BYTES = 12;
const RESPONSE = 0x8180;
const NAME_ERROR = 3;
/** A compression pointer to the name in the question. */
const SAME_NAME = 0xc00c;

/** Creates a function that answers address queries from a zone. */
export function makeResponder(zone: Zone): (query: Buffer) => Buffer {
  const asked = new Map<string, number>();
  return (query) => {
    const { name, type, end } = readQuestion(query);
    const answers = zone[name];
    const turn = asked.get(`${name}/${type}`) ?? 0;
    asked.set(`${name}/${type}`, turn + 1);
    const addresses = answers?.[Math.min(turn, answers.length - 1)] ?? [];
    const wanted = addresses.filter((one) => (isIPv4(one) ? TYPE_A : TYPE_AAAA) === type);
    const header = Buffer.from(query.subarray(0, HEADER_BYTES));
    header.writeUInt16BE(answers === undefined ? RESPONSE | NAME_ERROR : RESPONSE, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(wanted.length, 6);
    header.writeUInt32BE(0, 8);
    return Buffer.concat([header, query.subarray(HEADER_BYTES, end), ...wanted.map(record)]);
  };
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function record(address: string): Buffer {
  const data = isIPv4(address) ? Buffer.from(address.split('.').map(Number)) : ipv6Bytes(address);
  const head = Buffer.alloc(12);
  head.writeUInt16BE(SAME_NAME, 0);
  head.writeUInt16BE(isIPv4(address) ? TYPE_A : TYPE_AAAA, 2);
  head.writeUInt16BE(1, 4);
  // A time to live of 0, because the next answer may differ.
  head.writeUInt32BE(0, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function ipv6Bytes(address: string): Buffer {
  const [front = '', back = ''] = address.split('::');
  const groups = (text: string) => text.split(':').filter((group) => group !== '');
  const [first, last] = [groups(front), groups(back)];
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0');
  const words = [...first, ...zeros, ...last].map((group) => Number.parseInt(group, 16));
  const bytes = Buffer.alloc(16);
  for (const [n, word] of words.entries()) bytes.writeUInt16BE(word, n * 2);
  return bytes;
}
