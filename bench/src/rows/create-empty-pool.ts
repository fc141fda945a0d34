import { inTurns, timed } from '../measure/in-turns.ts';
import { type Row, ratioResult } from '../measure/row.ts';
import { SSH_ANSWERS } from './ssh-answers.ts';

const AT_MOST = 1.25;

/** A create that has to restore, against the same restore without the service. */
export const createEmptyPool: Row = {
  name: 'create-empty-pool',
  pool: 0,
  async run({ service, runs, bareMachine, progress }) {
    const bare = await bareMachine();
    const samples = await inTurns({
      runs,
      ours: async () => {
        await service.settled();
        let id = '';
        const took = await timed(async () => {
          id = (await service.createSandbox()).id;
        });
        await service.client.sandboxes.delete(id);
        return took;
      },
      comparison: async () => {
        await service.settled();
        return (await bare.restore()).answeredMs;
      },
      onTurn: (done) => progress(`${done}/${runs}`),
    });
    return [
      ratioResult({
        name: this.name,
        what: 'create with an empty pool, call to 201',
        against: 'bare restore of the same snapshot',
        unit: 'ms',
        ...samples,
        atMost: AT_MOST,
        notes: [SSH_ANSWERS],
      }),
    ];
  },
};
