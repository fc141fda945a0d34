import { isPublicAddress } from '@svc/service-kit/addresses';

/** Names that mean something only inside a network: the one this machine stands in. */
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

/** Whether a name, or the address that it is the reverse of, is none of a guest's business. */
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
