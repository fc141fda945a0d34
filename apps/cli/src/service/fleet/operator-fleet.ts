import { loadServiceConfig } from '@svc/config';
import {
  type ComponentRepository,
  type FleetRepository,
  type OpenFleet,
  openFleet,
  type QuarantineRepository,
} from '@svc/store';
import { CliError } from '../../output/errors.ts';
import { withDatabase } from '../operator-database.ts';

/**
 * Runs an operation on the fleet in the database of the configured service.
 * @throws CliError `no_database`
 */
export function withFleet<T>(operation: (fleet: FleetRepository) => Promise<T>): Promise<T> {
  return withOperator(({ fleet }) => operation(fleet));
}

/**
 * Runs an operation on the sandboxes in quarantine. See {@link withFleet}.
 * @throws CliError `no_database`
 */
export function withQuarantine<T>(
  operation: (quarantine: QuarantineRepository) => Promise<T>,
): Promise<T> {
  return withOperator(({ quarantine }) => operation(quarantine));
}

/**
 * Runs an operation on the identities of components. See {@link withFleet}.
 * @throws CliError `no_database`
 */
export function withComponents<T>(
  operation: (components: ComponentRepository) => Promise<T>,
): Promise<T> {
  return withOperator(({ components }) => operation(components));
}

function withOperator<T>(operation: (opened: OpenFleet) => Promise<T>): Promise<T> {
  return withDatabase(loadServiceConfig(), async (url) => {
    await using opened = openFleet(url);
    return await operation(opened);
  });
}

/** The error of an order for a worker that the fleet does not have. */
export function unknownWorker(workerId: string): CliError {
  return new CliError('worker_not_found', `the fleet has no worker ${workerId}`, {
    next: '`svc worker ls` lists the workers',
  });
}
