import { runProgram } from '@svc/service-kit/process';

/**
 * Removes the entries of a removed slot from the host's connection table, so that a sandbox with many connections does
 * not affect later ones. Without the `conntrack` program the entries expire by their timeouts, which the host's rules
 * keep short.
 */
export async function forgetConnections(slotAddress: string): Promise<boolean> {
  return runProgram('conntrack', ['-D', '-f', 'ipv4', '-s', slotAddress]).then(
    () => true,
    // conntrack also fails when there are no entries, which is the usual case.
    () => false,
  );
}
