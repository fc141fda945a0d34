/** The response codes of RFC 1035 that the forwarder uses. */
export const RCODE = {
  noError: 0,
  formatError: 1,
  serverFailure: 2,
  nameError: 3,
  notImplemented: 4,
  refused: 5,
} as const;

const RCODE_MASK = 0x0f;
const OPCODE_MASK = 0x7800;

export function rcodeOf(flags = 0): number {
  return flags & RCODE_MASK;
}

/** True for anything but a standard query (status, notify, dynamic update). */
export function isOtherOpcode(flags = 0): boolean {
  return (flags & OPCODE_MASK) !== 0;
}
