import { connect } from './connect.ts';
import { REQUEST_DEADLINES } from './pool.ts';
import { FleetRepository } from './repositories/fleet.ts';

/** The fleet in a database, until it is disposed of. */
export interface OpenFleet extends AsyncDisposable {
  readonly fleet: FleetRepository;
}

/** Opens the fleet in a database that the service may be using. Nothing is migrated. */
export function openFleet(url: string): OpenFleet {
  const db = connect(url, REQUEST_DEADLINES);
  return { fleet: new FleetRepository(db), [Symbol.asyncDispose]: () => db.destroy() };
}
