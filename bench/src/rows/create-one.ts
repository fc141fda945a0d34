import { inTurns } from '../measure/in-turns.ts';
import { type Row, ratioResult } from '../measure/row.ts';
import { timeCreate } from '../service/time-create.ts';

const SSH_ANSWERS =
  'SSH answers when the guest’s server has proved its host key, ours the one that it was given; the bare restore, whose ' +
  'guest makes its own, hears the refusal of a request to authenticate as well.';

interface CreateRow {
  readonly name: string;
  /** Idle sandboxes that wait for the create. */
  readonly pool: number;
  readonly what: string;
  readonly atMost: number;
}

/** Creating a sandbox, against a restore of the same snapshot without the service. */
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

/** A create that has to restore. */
export const createEmptyPool = createOne({
  name: 'create-empty-pool',
  pool: 0,
  what: 'create with an empty pool, call to 201',
  atMost: 1.25,
});

/** A create that is handed an idle VM. */
export const createFromPool = createOne({
  name: 'create-from-pool',
  pool: 2,
  what: 'create from the pool, call to 201',
  atMost: 0.1,
});
