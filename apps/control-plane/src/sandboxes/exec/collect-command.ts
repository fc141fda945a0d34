import { addAbortSignal, type Readable } from 'node:stream';
import { type ExecEvent, type ExecExitEvent, LIMITS } from '@svc/contract';
import type { Budget } from '@svc/service-kit/concurrency';
import { CollectedOutput } from './collected-output.ts';

/**
 * Collects the events of a command. Settles when the command has ended, with its answer as JSON, which holds its part of
 * the budget until it is closed, and is closed when `signal` aborts. Output beyond the limit is dropped; the command keeps
 * running.
 * @throws the errors of the events
 */
export async function collectCommand(
  events: AsyncIterable<Exclude<ExecEvent, { event: 'error' }>>,
  budget: Budget,
  signal: AbortSignal,
): Promise<Readable> {
  const output = new CollectedOutput(LIMITS.execOutputBytes, budget);
  let outcome: ExecExitEvent | undefined;
  try {
    for await (const { event, data } of events) {
      if (event === 'exit') outcome = data;
      else output.add(event, data.data);
    }
    if (outcome === undefined) throw new Error('the events end without an exit');
    return addAbortSignal(
      signal,
      output.json(outcome).on('error', () => undefined),
    );
  } catch (error) {
    output.release();
    throw error;
  }
}
