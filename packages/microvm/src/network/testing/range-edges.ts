import { SPECIAL_IPV4_RANGES } from '../special-ranges.ts';

/** The first and last address of every special IPv4 range. */
export function insideEdges(): string[] {
  return bounds().flatMap(([first, last]) => [toText(first), toText(last)]);
}

/** The addresses next to every special range that belong to none. */
export function outsideEdges(): string[] {
  const neighbours = bounds().flatMap(([first, last]) => [first - 1, last + 1]);
  const isSpecial = (value: number) => bounds().some(([a, b]) => value >= a && value <= b);
  const exists = (value: number) => value >= 0 && value <= 0xffff_ffff;
  return neighbours.filter((value) => exists(value) && !isSpecial(value)).map(toText);
}

function bounds(): [number, number][] {
  return SPECIAL_IPV4_RANGES.map((range) => {
    const [address = '', length = ''] = range.split('/');
    const first = address.split('.').reduce((value, octet) => value * 256 + Number(octet), 0);
    return [first, first + 2 ** (32 - Number(length)) - 1];
  });
}

function toText(value: number): string {
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 0xff).join('.');
}
