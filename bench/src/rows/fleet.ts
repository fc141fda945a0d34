import { CUSTOMER_SCRIPT, Customer, FleetLab } from '@svc/fleet-lab';
import type { SvcClient } from '@svc/sdk';
import { until } from '@svc/service-driver';
import { inTurns, timed } from '../measure/in-turns.ts';
import { CONNECTIONS, ratesInTurns } from '../measure/request-rate.ts';
import { type Row, type RowContext, type RowResult, ratioResult } from '../measure/row.ts';
import { summarise } from '../measure/statistics.ts';
import { PROMPT, RULE } from '../sessions/bench-models.ts';
import { BenchSessions } from '../sessions/bench-sessions.ts';

const SIZE = { controlPlanes: 2, runtimeHosts: 2, workers: 3 };
const AGAINST = 'the same with all pieces in one process';
const AT_MOST = 1.3;
const RESUMED_SECONDS = 45;
/** Gets in one turn, whose median counts. Short turns in quick succession, since the speed of the machine changes within seconds. */
const GETS = 20;
/** Turns with gets for each run of the other measurements, since one takes a few milliseconds. */
const GET_TURNS = 10;
/** Turns until both sides run compiled code, as a service does that has answered requests for some seconds. */
const GET_WARM_UPS = 100;
const TASK_MS = 120_000;

type Side = { readonly client: SvcClient };

/**
 * A fleet on this machine, with each piece in a process and a network namespace of its own and a load balancer in front, compared
 * with the service that runs all pieces in one process. Neither has a pool.
 */
export const fleet: Row = {
  name: 'fleet',
  pool: 0,
  async run(context) {
    context.progress('starting the fleet');
    const script = { rules: [RULE, ...CUSTOMER_SCRIPT.rules] };
    await using lab = await FleetLab.start(SIZE, script);
    const ours: Side = { client: await lab.signUp() };
    return [
      await create(context, ours),
      ...(await get(context, ours, lab.address)),
      await turn(context, ours, lab.model.url),
      await recovery(context, lab, ours),
    ];
  },
};

async function create({ service, runs, progress }: RowContext, ours: Side): Promise<RowResult> {
  const measure = async ({ client }: Side): Promise<number> => {
    await service.settled();
    let id = '';
    const took = await timed(async () => {
      id = (await client.sandboxes.create({ template: 'standard' })).vm_id;
    });
    await client.sandboxes.delete(id);
    return took;
  };
  const samples = await inTurns({
    runs,
    ours: () => measure(ours),
    comparison: () => measure(service),
    onTurn: (done) => progress(`create ${done}/${runs}`),
  });
  return result('fleet-create', 'POST /v1/sandboxes in a fleet, without a pool', samples);
}

async function get(
  context: RowContext,
  ours: Side,
  { baseUrl, ca }: FleetLab['address'],
): Promise<RowResult[]> {
  const { service, runs, progress } = context;
  const sides = await Promise.all(
    [ours, service].map(async ({ client }) => {
      const { vm_id: id } = await client.sandboxes.create({ template: 'standard' });
      return { client, id };
    }),
  );
  const [fleetSide, serviceSide] = sides;
  if (fleetSide === undefined || serviceSide === undefined) throw new Error('a side is missing');
  const measure = async ({ client, id }: typeof fleetSide): Promise<number> => {
    const took: number[] = [];
    while (took.length < GETS) took.push(await timed(() => client.sandboxes.get(id)));
    return summarise(took).median;
  };
  const samples = await inTurns({
    runs: GET_TURNS * runs,
    warmUps: GET_WARM_UPS,
    ours: () => measure(fleetSide),
    comparison: () => measure(serviceSide),
    onTurn: (done, turns) => progress(`get ${done}/${turns}`),
  });
  const { api_key: apiKey } = await ours.client.keys.create();
  const rates = await ratesInTurns(
    context,
    {
      ours: `${baseUrl}/v1/sandboxes/${fleetSide.id}`,
      comparison: `${service.baseUrl}/v1/sandboxes/${serviceSide.id}`,
    },
    { apiKey, ca },
  );
  for (const { client, id } of sides) await client.sandboxes.delete(id);
  return [
    result('fleet-get', 'GET /v1/sandboxes/{id} in a fleet, one connection', samples),
    ratioResult({
      name: 'fleet-get-rate',
      what: `GET /v1/sandboxes/{id} in a fleet, ${CONNECTIONS} connections`,
      against: AGAINST,
      unit: 'req/s',
      ...rates,
    }),
  ];
}

async function turn(
  { service, models, runs, progress }: RowContext,
  ours: Side,
  modelUrl: string,
): Promise<RowResult> {
  const sides = await Promise.all([
    BenchSessions.open(ours, modelUrl),
    BenchSessions.open(service, models.server.url),
  ]);
  const started = await Promise.all(
    sides.map(async (sessions) => {
      const session = await sessions.create();
      return { sessions, session, client: await sessions.attach(session) };
    }),
  );
  const [fleetSide, serviceSide] = started;
  if (fleetSide === undefined || serviceSide === undefined) throw new Error('a side is missing');
  const measure = ({ client }: typeof fleetSide) =>
    timed(async () => {
      client.task(PROMPT);
      await client.until('task_completed');
    });
  const samples = await inTurns({
    runs,
    ours: () => measure(fleetSide),
    comparison: () => measure(serviceSide),
    onTurn: (done) => progress(`turn ${done}/${runs}`),
  });
  for (const { sessions, session, client } of started) {
    await client.close();
    await sessions.delete(session);
  }
  return result('fleet-turn', 'turn of a session in a fleet', samples);
}

/** A worker's machine falls silent while a client is attached: the time until its session has completed the next task. */
async function recovery(
  { progress }: RowContext,
  lab: FleetLab,
  { client }: Side,
): Promise<RowResult> {
  progress('losing a worker');
  await using customer = await Customer.start(client);
  const completes = async () => {
    const before = customer.acknowledged;
    const isNext = async () => customer.acknowledged > before + 1;
    await until('the customer completes tasks', isNext, { deadlineMs: TASK_MS });
  };
  await completes();
  const worker = await lab.workerOf((await customer.sandbox()).vm_id);
  customer.takeLongestGapMs();
  await lab.network.cut(worker.machine, 'both');
  await completes();
  const gap = customer.takeLongestGapMs();
  await lab.network.heal();
  return {
    name: 'fleet-recovery',
    what: 'loss of a worker to the next completed task of its session',
    against: `${RESUMED_SECONDS} s`,
    unit: 'ms',
    ours: summarise([gap]),
    figure: { text: `${(gap / 1000).toFixed(1)} s`, value: gap / 1000 },
    bound: `≤ ${RESUMED_SECONDS} s`,
    ok: gap <= RESUMED_SECONDS * 1000,
    notes: ['measured once; the client stays attached and gives the task again'],
  };
}

function result(
  name: string,
  what: string,
  samples: { readonly ours: number[]; readonly comparison: number[] },
): RowResult {
  return ratioResult({ name, what, against: AGAINST, unit: 'ms', ...samples, atMost: AT_MOST });
}
