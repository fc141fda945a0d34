import { inTurns } from '../measure/in-turns.ts';
import { type Row, ratioResult } from '../measure/row.ts';
import { timeCreate } from '../service/time-create.ts';

const SSH_ANSWERS =
  'SSH counts as answering when the guest’s server has proved its host key: in svc the key that it was given; in the bare ' +
  'restore, whose guest generates its own, after it has also refused an authentication request.';

interface CreateRow {
  readonly name: string;
  /** Idle VMs in the pool. */
  readonly pool: number;
  readonly what: string;
  readonly atMost: number;
}

/** The create of a sandbox, compared with a restore of the same snapshot without the service. */
function createOne({ name, pool, what, atMost }: CreateRow): Row {
  return {
    name,
    pool,
    async run({ service, runs, bareMachine, progress }) {
      const bare = await bareMachine();
      const samples = await inTurns({
        runs,
        ours: async () => {
          await service.settled();
          return timeCreate(service);
        },
        comparison: async () => {
          await service.settled();
          return (await bare.restore()).answeredMs;
        },
        onTurn: (done) => progress(`${done}/${runs}`),
      });
      return [
        ratioResult({
          name,
          what,
          against: 'bare restore of the same snapshot',
          unit: 'ms',
          ...samples,
          atMost,
          notes: [SSH_ANSWERS],
        }),
      ];
    },
  };
}

/** A create that has to restore a VM. */
export const createEmptyPool = createOne({
  name: 'create-empty-pool',
  pool: 0,
  what: 'create with an empty pool, request to 201',
  atMost: 1.25,
});

/** A create that receives an idle VM. */
export const createFromPool = createOne({
  name: 'create-from-pool',
  pool: 2,
  what: 'create from the pool, request to 201',
  atMost: 0.1,
});
