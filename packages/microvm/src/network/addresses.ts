/** Maximum number of instances per machine, and of slot indexes per instance. Index 0 is not a slot. */
export const INSTANCE_COUNT = 32;
export const SLOT_COUNT = 2048;

const FIRST_BLOCK = toNumber('198.18.0.0');
const BLOCK_SIZE = SLOT_COUNT * 2;
/** Above every range that distributions, containers and service managers allocate from. */
const FIRST_UID = 1_900_000_000;

/** The addresses of a slot's link to the host: both ends of a /31. */
export interface SlotAddresses {
  /** The host's end. */
  readonly hostAddress: string;
  /** The slot's end, which reaches the guest. */
  readonly slotAddress: string;
}

/** The instance's address block, a /20 of 198.18.0.0/15, in CIDR notation. */
export function instanceBlock(instance: number): string {
  return `${toText(blockStart(instance))}/20`;
}

/** The address at which an instance serves its guests. */
export function serviceAddress(instance: number): string {
  return toText(blockStart(instance) + 1);
}

/** The link addresses of a slot. `slot` runs from 1 to {@link SLOT_COUNT} - 1. */
export function slotAddresses(instance: number, slot: number): SlotAddresses {
  const first = blockStart(instance) + slot * 2;
  return { hostAddress: toText(first), slotAddress: toText(first + 1) };
}

/** The slot whose guest sends from `address`. Undefined for any other address. */
export function slotOfAddress(instance: number, address: string): number | undefined {
  const offset = toNumber(address) - blockStart(instance);
  const isSlotAddress = offset >= 2 && offset < BLOCK_SIZE && offset % 2 === 1;
  return isSlotAddress ? (offset - 1) / 2 : undefined;
}

/** The unprivileged user and group of the VM process in a slot. */
export function slotUid(instance: number, slot: number): number {
  return FIRST_UID + instance * SLOT_COUNT + slot;
}

function blockStart(instance: number): number {
  return FIRST_BLOCK + instance * BLOCK_SIZE;
}

function toNumber(address: string): number {
  return address.split('.').reduce((value, octet) => value * 256 + Number(octet), 0);
}

function toText(value: number): string {
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 0xff).join('.');
}
