import { connect } from './connect.ts';
import { REQUEST_DEADLINES } from './pool.ts';
import { ArchiveRepository } from './repositories/archive.ts';
import { ComponentRepository } from './repositories/components.ts';
import { ControlPlaneRepository } from './repositories/control-planes.ts';
import { FleetRepository } from './repositories/fleet.ts';
import { QuarantineRepository } from './repositories/quarantine/quarantine-repository.ts';
import { RuntimeHostRepository } from './repositories/runtime-hosts.ts';
import { ServerStateRepository } from './repositories/server-state.ts';

/** The fleet in a database, until it is disposed of. */
export interface OpenFleet extends AsyncDisposable {
  readonly fleet: FleetRepository;
  readonly controlPlanes: Pick<ControlPlaneRepository, 'list'>;
  readonly runtimeHosts: Pick<RuntimeHostRepository, 'list'>;
  readonly components: ComponentRepository;
  readonly server: ServerStateRepository;
  readonly quarantine: QuarantineRepository;
  readonly archive: ArchiveRepository;
}

/** Opens the fleet in a database that the service may be using. Nothing is migrated. */
export function openFleet(url: string): OpenFleet {
  const db = connect(url, REQUEST_DEADLINES);
  return {
    fleet: new FleetRepository(db),
    controlPlanes: new ControlPlaneRepository(db),
    runtimeHosts: new RuntimeHostRepository(db),
    components: new ComponentRepository(db),
    server: new ServerStateRepository(db),
    quarantine: new QuarantineRepository(db),
    archive: new ArchiveRepository(db),
    [Symbol.asyncDispose]: () => db.destroy(),
  };
}
