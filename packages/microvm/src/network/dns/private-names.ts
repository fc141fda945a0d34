import { isPublicAddress } from '@svc/service-kit/addresses';

/** Zones whose names have a meaning only within the local network of this machine. */
const PRIVATE_ZONES = [
  'localhost',
  'local',
  'internal',
  'home.arpa',
  'lan',
  'localdomain',
  'ip6.arpa',
];
const REVERSE_ZONE = '.in-addr.arpa';

/** Whether a guest must not look up a name: it is private, or the reverse name of an address that is not public. */
export function isPrivateName(name: string): boolean {
  const lower = name.toLowerCase().replace(/\.$/, '');
  if (lower === REVERSE_ZONE.slice(1)) return true;
  if (lower.endsWith(REVERSE_ZONE)) return !isReverseOfPublic(lower);
  return PRIVATE_ZONES.some((zone) => lower === zone || lower.endsWith(`.${zone}`));
}

function isReverseOfPublic(name: string): boolean {
  const address = name.slice(0, -REVERSE_ZONE.length).split('.').reverse().join('.');
  return isPublicAddress(address);
}
