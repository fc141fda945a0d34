import { loadServiceConfig } from '@svc/config';
import { type FleetRepository, openFleet } from '@svc/store';
import { CliError } from '../../output/errors.ts';
import { databaseUrl } from '../operator-database.ts';

/**
 * Runs an operation on the fleet in the database of the configured service.
 * @throws CliError `no_database`
 */
export async function withFleet<T>(operation: (fleet: FleetRepository) => Promise<T>): Promise<T> {
  await using cleanUp = new AsyncDisposableStack();
  const url = await databaseUrl(loadServiceConfig(), cleanUp);
  await using opened = openFleet(url);
  return await operation(opened.fleet);
}

/** The error of an order for a worker that the fleet does not have. */
export function unknownWorker(workerId: string): CliError {
  return new CliError('worker_not_found', `the fleet has no worker ${workerId}`, {
    next: '`svc worker ls` lists the workers',
  });
}
