import { SPECIAL_IPV4_RANGES } from '@svc/service-kit/addresses';

/** The nftables set of destinations that no guest may reach: the special ranges and the operator's own. */
export function blockedSet(extraRanges: readonly string[]): string {
  const ranges = [...SPECIAL_IPV4_RANGES, ...extraRanges];
  return `set blocked {
    type ipv4_addr; flags interval; auto-merge
    elements = { ${ranges.join(', ')} }
  }`;
}

/** nftables commands that replace a table in one transaction, whether or not it exists. */
export function replaceTable(family: string, name: string, body: string): string {
  return `table ${family} ${name} {}
delete table ${family} ${name}
table ${family} ${name} {
${body}
}
`;
}
