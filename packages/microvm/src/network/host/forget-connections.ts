import { run } from '../command.ts';

/**
 * Drops what the host's connection table still holds of a slot that is gone, so that a sandbox that
 * opened many connections does not weigh on the next ones. Without the `conntrack` program the
 * entries end by their own time-outs, which the host's rules keep short.
 */
export async function forgetConnections(outer: string): Promise<boolean> {
  return run('conntrack', ['-D', '-f', 'ipv4', '-s', outer]).then(
    () => true,
    // It fails alike when there was nothing to drop, which is the usual case.
    () => false,
  );
}
