import { runProgram } from '@svc/service-kit/process';
import { NetworkError } from '../network-error.ts';
import { networkNames } from './existing-slots.ts';
import type { NetworkSlot } from './network-slot.ts';

/**
 * Removes slots, and their entries in the host's connection table, so that a sandbox with many connections does not affect
 * later ones. Missing parts, for example after a crash, are not an error. Without the `conntrack` program the entries expire
 * by their timeouts, which the host's rules keep short.
 *
 * @throws NetworkError `network_setup_failed` when a namespace or interface remains
 */
export async function removeSlots(
  slots: readonly (Pick<NetworkSlot, 'netns'> & Partial<Pick<NetworkSlot, 'address'>>)[],
): Promise<void> {
  if (slots.length === 0) return;
  const names = slots.map(({ netns }) => netns);
  const addresses = slots.flatMap(({ address }) => address ?? []);
  // One program for everything, because each start of one holds up this process. `conntrack` also fails when there are no
  // entries, which is the usual case.
  const script = `status=0
ip -force -batch - <<'EOF' || status=$?
${names.map((name) => `link del ${name}\nnetns del ${name}\n`).join('')}EOF
${addresses.map((address) => `conntrack -D -f ipv4 -s ${address} >&2 || :`).join('\n')}
exit $status
`;
  // `ip` fails both for a missing part and for one that it cannot remove, so the result has to be checked.
  const failure = await runProgram('sh', ['-eu'], script).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (failure === undefined) return;
  const existing = await networkNames();
  const left = names.filter((name) => existing.has(name));
  if (left.length > 0) {
    throw new NetworkError('network_setup_failed', `cannot remove ${left.join(', ')}`, {
      cause: failure,
    });
  }
}
