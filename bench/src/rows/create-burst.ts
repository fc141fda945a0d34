import { timed } from '../measure/in-turns.ts';
import type { Row } from '../measure/row.ts';
import { summarise } from '../measure/statistics.ts';

const AT_ONCE = 20;
/** A burst yields many measurements, so fewer bursts than runs suffice. */
const RUNS_PER_BURST = 10;

/** Many concurrent creates. */
export const createBurst: Row = {
  name: 'create-burst',
  pool: 2,
  async run({ service, runs, progress }) {
    const { sandboxes } = service.client;
    const bursts = Math.max(1, Math.ceil(runs / RUNS_PER_BURST));
    const took: number[] = [];
    const failures: string[] = [];
    for (let burst = 0; burst < bursts; burst += 1) {
      await service.settled();
      const ids: string[] = [];
      const results = await Promise.allSettled(
        Array.from({ length: AT_ONCE }, () =>
          timed(async () => ids.push((await service.createSandbox()).id)),
        ),
      );
      for (const result of results) {
        if (result.status === 'fulfilled') took.push(result.value);
        else failures.push(String(result.reason));
      }
      await Promise.all(ids.map((id) => sandboxes.delete(id)));
      progress(`${burst + 1}/${bursts}`);
    }
    const ours = summarise(took);
    return [
      {
        name: this.name,
        what: `${AT_ONCE} concurrent creates, request to 201`,
        against: '',
        unit: 'ms',
        ours,
        figure: { text: `p95 ${ours.p95.toFixed(0)} ms`, value: ours.p95 },
        bound: 'all succeed',
        ok: failures.length === 0,
        notes: [
          `${took.length} of ${bursts * AT_ONCE} creates succeeded in ${bursts} bursts`,
          ...new Set(failures),
        ],
      },
    ];
  },
};
