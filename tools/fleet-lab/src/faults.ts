import type { Customer } from './customer.ts';
import type { FleetLab } from './fleet-lab.ts';
import type { Piece } from './piece.ts';

/** Something that goes wrong in a fleet while customers use it. */
export interface Fault {
  readonly name: string;
  /** How long it lasts, in seconds. */
  readonly seconds: number;
  strike(lab: FleetLab, customers: readonly Customer[]): Promise<unknown>;
  /** Ends it. The links of the network are healed before. */
  mend(lab: FleetLab): Promise<unknown>;
}

const first = (pieces: readonly Piece[]): Piece => {
  const [piece] = pieces;
  if (piece === undefined) throw new Error('the lab has no such piece');
  return piece;
};

/** The worker that runs the session of the first customer. */
async function workerOf(lab: FleetLab, [customer]: readonly Customer[]): Promise<Piece> {
  if (customer === undefined) throw new Error('the lab has no customer');
  const { vm_id: vmId } = await customer.sandbox();
  return lab.workerOf(vmId);
}

const kill = (name: string, pieces: (lab: FleetLab) => readonly Piece[]): Fault => ({
  name: `kill -9 of ${name}`,
  seconds: 5,
  strike: (lab) => first(pieces(lab)).end('SIGKILL'),
  mend: (lab) => first(pieces(lab)).start(),
});

const cutOff = (name: string, pieces: (lab: FleetLab) => readonly Piece[]): Fault => ({
  name: `${name} cut off`,
  seconds: 30,
  strike: (lab) => lab.network.cut(first(pieces(lab)).machine, 'both'),
  mend: async () => undefined,
});

const onWorker = (
  name: string,
  seconds: number,
  strike: (lab: FleetLab, worker: Piece) => Promise<unknown>,
  mend: (worker: Piece) => Promise<unknown> = async () => undefined,
): Fault => {
  let worker: Piece | undefined;
  return {
    name,
    seconds,
    async strike(lab, customers) {
      worker = await workerOf(lab, customers);
      await strike(lab, worker);
    },
    async mend() {
      if (worker !== undefined) await mend(worker);
    },
  };
};

/** Every fault, in an order in which each begins with a fleet that is whole. */
export const FAULTS: readonly Fault[] = [
  kill('a control plane', (lab) => lab.controlPlanes),
  cutOff('a control plane', (lab) => lab.controlPlanes),
  kill('a runtime host', (lab) => lab.runtimeHosts),
  cutOff('a runtime host', (lab) => lab.runtimeHosts),
  onWorker(
    'kill -9 of a worker, which starts again',
    5,
    (_, worker) => worker.end('SIGKILL'),
    (worker) => worker.start(),
  ),
  onWorker('a worker cut off for a minute', 60, (lab, worker) =>
    lab.network.cut(worker.machine, 'both'),
  ),
  onWorker('nothing arrives at a worker for a minute', 60, (lab, worker) =>
    lab.network.cut(worker.machine, 'to'),
  ),
  onWorker('nothing leaves a worker for a minute', 60, (lab, worker) =>
    lab.network.cut(worker.machine, 'from'),
  ),
  onWorker('a slow link to a worker', 20, (lab, worker) => lab.network.slow(worker.machine)),
  {
    name: 'the object store cut off for a minute',
    seconds: 60,
    strike: (lab) => lab.network.cut(lab.backing.objectStore, 'both'),
    mend: async () => undefined,
  },
  {
    name: 'PostgreSQL cut off for 20 seconds',
    seconds: 20,
    strike: (lab) => lab.network.cut(lab.backing.database, 'both'),
    mend: async () => undefined,
  },
];
