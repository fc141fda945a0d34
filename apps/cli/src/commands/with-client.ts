import type { SvcClient } from '@svc/sdk';
import { connect } from '../connection/resolve.ts';

/** Runs a client command: connects, gives it a signal that Ctrl-C fires, closes the connections. */
export async function withClient(
  work: (client: SvcClient, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const interrupt = new AbortController();
  const stop = () => interrupt.abort(new DOMException('interrupted', 'AbortError'));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  const client = await connect();
  try {
    await work(client, interrupt.signal);
  } finally {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
    await client.close();
  }
}
