import type { SvcClient } from '@svc/sdk';
import { connect } from '../connection/resolve.ts';
import { withInterrupt } from '../interrupt.ts';

/** Runs a client command: connects, gives it a signal that Ctrl-C fires, closes the connections. */
export function withClient(
  work: (client: SvcClient, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  return withInterrupt(async (signal) => {
    await using client = await connect();
    await work(client, signal);
  });
}
