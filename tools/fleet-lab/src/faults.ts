import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Customer } from './customer.ts';
import type { FleetLab } from './fleet-lab.ts';
import type { Piece } from './piece.ts';
import { rollingRestart } from './rolling-restart.ts';

/** Requests that take this long must end in order, whatever restarts. */
const LONG_SECONDS = 60;

/** Something that goes wrong in a fleet while customers use it. */
export interface Fault {
  readonly name: string;
  /** How long it lasts, in seconds. */
  readonly seconds: number;
  /** A line of `svc doctor --fleet` that names it while it lasts. Absent where nothing that the doctor can ask knows. */
  readonly finding?: RegExp | undefined;
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

type PiecesOf = (lab: FleetLab) => readonly Piece[];

const kill = (name: string, pieces: PiecesOf, finding?: RegExp): Fault => ({
  name: `kill -9 of ${name}`,
  seconds: 5,
  finding,
  strike: (lab) => first(pieces(lab)).end('SIGKILL'),
  mend: (lab) => first(pieces(lab)).start(),
});

const cutOff = (name: string, pieces: PiecesOf, finding?: RegExp): Fault => ({
  name: `${name} cut off`,
  seconds: 30,
  finding,
  strike: (lab) => lab.network.cut(first(pieces(lab)).machine, 'both'),
  mend: async () => undefined,
});

const onWorker = (
  name: string,
  seconds: number,
  strike: (lab: FleetLab, worker: Piece) => Promise<unknown>,
  finding?: RegExp,
  mend: (worker: Piece, lab: FleetLab) => Promise<unknown> = async () => undefined,
): Fault => {
  let worker: Piece | undefined;
  return {
    name,
    seconds,
    finding,
    async strike(lab, customers) {
      worker = await workerOf(lab, customers);
      await strike(lab, worker);
    },
    async mend(lab) {
      if (worker !== undefined) await mend(worker, lab);
    },
  };
};

/** A machine that was made from a copy of the disk of a worker asks for its id. It never becomes ready. */
function clonedWorker(): Fault {
  let clone: Piece | undefined;
  let start: Promise<void> | undefined;
  return {
    name: 'two workers with one id',
    seconds: 40,
    finding: /fail +worker +another machine wants the id of worker-\d, and is refused/,
    async strike(lab, customers) {
      const { machine, dataDir } = await workerOf(lab, customers);
      clone = await lab.addWorker('clone', { SVC_WORKER_ID: machine.name });
      await mkdir(clone.dataDir);
      for (const name of ['worker-key.pem', 'worker-enrolled']) {
        await copyFile(join(dataDir, name), join(clone.dataDir, name));
      }
      start = clone.start();
      start.catch(() => undefined);
    },
    async mend() {
      await clone?.end('SIGKILL');
      const becameReady = await start?.then(
        () => true,
        () => false,
      );
      if (becameReady) throw new Error('another machine became a worker under an id in use');
    },
  };
}

const SHIFTED_CLOCK = fileURLToPath(new URL('shifted-clock.js', import.meta.url));

/** Starts a piece again with a clock that is off: that of its process, since all machines of the lab have one kernel. */
async function shiftClock(piece: Piece, ms: number): Promise<void> {
  await piece.end('SIGTERM');
  const NODE_OPTIONS = `--import=${SHIFTED_CLOCK}`;
  await piece.start({ NODE_OPTIONS, CLOCK_SHIFT_MS: String(ms) });
}

async function restart(piece: Piece): Promise<void> {
  await piece.end('SIGTERM');
  await piece.start();
}

const LOST_CONTROL_PLANE = /warn +control plane +\S+ ended without a shutdown/;
const LOST_RUNTIME_HOST = /warn +runtime host +\S+ ended without a shutdown/;
const LOST_WORKER = /fail +worker +worker-\d is silent since .*does not answer/;

/** Restarts everything, with the version of another checkout if one is given. @throws Error with what failed meanwhile */
async function restartAll(
  lab: FleetLab,
  customers: readonly Customer[],
  checkout?: string,
): Promise<void> {
  const options = { longSeconds: LONG_SECONDS, checkout };
  const { problems, answered, longestMs } = await rollingRestart(lab, customers, options);
  const seconds = (longestMs / 1000).toFixed(1);
  console.log(`     ${answered} requests answered, at most ${seconds} s late`);
  if (problems.length > 0) throw new Error(problems.join('\n     '));
}

const otherVersion = (name: string, pieces: PiecesOf, checkout: string): Fault => ({
  name: `${name} of the version before`,
  seconds: 60,
  async strike(lab) {
    const piece = first(pieces(lab));
    await piece.end('SIGTERM');
    await piece.start({}, checkout);
  },
  mend: (lab) => restart(first(pieces(lab))),
});

/** The faults of a fleet in which two versions meet. @param previous a checkout of the version before this one */
export const versionFaults = (previous: string): readonly Fault[] => [
  otherVersion('a control plane', (lab) => lab.controlPlanes, previous),
  otherVersion('a runtime host', (lab) => lab.runtimeHosts, previous),
  otherVersion('a worker', (lab) => lab.workers, previous),
  {
    name: 'everything rolled back to the version before, and upgraded again',
    seconds: 0,
    async strike(lab, customers) {
      await restartAll(lab, customers, previous);
      await restartAll(lab, customers);
    },
    mend: async () => undefined,
  },
];

/** Every fault of a fleet of one version, in an order in which each begins with a fleet that is whole. */
export const FAULTS: readonly Fault[] = [
  {
    name: 'a rolling restart of everything',
    seconds: 0,
    strike: (lab, customers) => restartAll(lab, customers),
    mend: async () => undefined,
  },
  kill('a control plane', (lab) => lab.controlPlanes, LOST_CONTROL_PLANE),
  cutOff('a control plane', (lab) => lab.controlPlanes, LOST_CONTROL_PLANE),
  kill('a runtime host', (lab) => lab.runtimeHosts, LOST_RUNTIME_HOST),
  cutOff('a runtime host', (lab) => lab.runtimeHosts, LOST_RUNTIME_HOST),
  onWorker(
    'kill -9 of a worker, which starts again',
    5,
    (_, worker) => worker.end('SIGKILL'),
    /worker-\d sends heartbeats, but does not answer|worker-\d is silent/,
    (worker) => worker.start(),
  ),
  onWorker(
    'a worker cut off for a minute',
    60,
    (lab, worker) => lab.network.cut(worker.machine, 'both'),
    LOST_WORKER,
  ),
  onWorker(
    'nothing arrives at a worker for a minute',
    60,
    (lab, worker) => lab.network.cut(worker.machine, 'to'),
    LOST_WORKER,
  ),
  onWorker(
    'nothing leaves a worker for a minute',
    60,
    (lab, worker) => lab.network.cut(worker.machine, 'from'),
    LOST_WORKER,
  ),
  clonedWorker(),
  ...[60_000, -60_000].map((ms) =>
    onWorker(
      `the clock of a worker a minute ${ms > 0 ? 'ahead' : 'behind'}`,
      30,
      (_, worker) => shiftClock(worker, ms),
      // Node's own clock, which the doctor sees in the Date header, cannot be shifted.
      undefined,
      restart,
    ),
  ),
  ...[60_000, -60_000].map((ms) => ({
    name: `the clock of a control plane a minute ${ms > 0 ? 'ahead' : 'behind'}`,
    seconds: 30,
    strike: (lab: FleetLab) => shiftClock(first(lab.controlPlanes), ms),
    mend: (lab: FleetLab) => restart(first(lab.controlPlanes)),
  })),
  onWorker(
    'a full disk on a worker',
    30,
    (lab, worker) => lab.diskOf(worker).fill(),
    /fail +worker +worker-\d has only 0 MiB of disk left to promise/,
    (worker, lab) => lab.diskOf(worker).clear(),
  ),
  onWorker('a slow link to a worker', 20, (lab, worker) => lab.network.slow(worker.machine)),
  {
    name: 'the object store cut off for a minute',
    seconds: 60,
    finding: /fail +object store +cannot reach/,
    strike: (lab) => lab.network.cut(lab.backing.objectStore, 'both'),
    mend: async () => undefined,
  },
  {
    name: 'PostgreSQL cut off for 20 seconds',
    seconds: 20,
    finding: /fail +database +could not be checked/,
    strike: (lab) => lab.network.cut(lab.backing.database, 'both'),
    mend: async () => undefined,
  },
  {
    name: 'the primary of PostgreSQL killed and its standby promoted',
    seconds: 0,
    strike: (lab) => lab.backing.failOver(),
    mend: async () => undefined,
  },
];
