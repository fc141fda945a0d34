import { SPECIAL_IPV4_RANGES } from '@svc/service-kit/addresses';

/** The nftables set of destinations no guest reaches, with the operator's own ranges added. */
export function blockedSet(extraRanges: readonly string[]): string {
  const ranges = [...SPECIAL_IPV4_RANGES, ...extraRanges];
  return `set blocked {
    type ipv4_addr; flags interval; auto-merge
    elements = { ${ranges.join(', ')} }
  }`;
}

/** Text that replaces a whole table in one transaction, whether or not it exists. */
export function replaceTable(family: string, name: string, body: string): string {
  return `table ${family} ${name} {}
delete table ${family} ${name}
table ${family} ${name} {
${body}
}
`;
}
