import { SvcError } from '@svc/sdk';
import { CliError, exitCodeOf } from './errors.ts';

/**
 * Waits for a creation of the SDK. The service goes on with it when its caller leaves, because the SDK may ask for the
 * result again: after an interrupt or a timeout, the error says where to find it.
 */
export async function awaitCreation<T>(
  kind: 'sandbox' | 'session',
  creation: Promise<T>,
): Promise<T> {
  try {
    return await creation;
  } catch (error) {
    const isInterrupt = error instanceof Error && error.name === 'AbortError';
    const isTimeout = error instanceof SvcError && error.code === 'timeout';
    if (!isInterrupt && !isTimeout) throw error;
    const what = isInterrupt ? 'interrupted' : 'no answer in time';
    throw new CliError('creation_unfinished', `${what}; the ${kind} may be created all the same`, {
      next: `\`svc ${kind} list\` shows whether it is there, \`svc ${kind} rm <id>\` ends it`,
      exitCode: exitCodeOf(error),
      cause: error,
    });
  }
}
