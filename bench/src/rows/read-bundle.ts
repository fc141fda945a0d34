import { requestsPerSecond, WARM_UP_ROUNDS } from '../measure/request-rate.ts';
import type { Row } from '../measure/row.ts';
import { summarise } from '../measure/statistics.ts';

const AT_LEAST = 1000;
const BUNDLE = 'bench';

/** Reads of one secret bundle. */
export const readBundle: Row = {
  name: 'read-bundle',
  pool: 2,
  async run({ service, runs, progress }) {
    const { secrets } = service.client;
    await secrets.create(BUNDLE, { LLM_API_KEY: 'sk-bench' });
    try {
      await service.settled();
      const url = `${service.baseUrl}/v1/tenants/me/secrets/${BUNDLE}`;
      const rates: number[] = [];
      for (let round = -WARM_UP_ROUNDS; round < runs; round += 1) {
        const rate = await requestsPerSecond(url, service);
        if (round >= 0) rates.push(rate);
        progress(`${round + 1}/${runs}`);
      }
      const ours = summarise(rates);
      return [
        {
          name: this.name,
          what: 'GET /v1/tenants/me/secrets/{name}',
          against: '',
          unit: 'req/s',
          ours,
          figure: { text: `${ours.median.toFixed(0)} req/s`, value: ours.median },
          bound: `≥ ${AT_LEAST} req/s`,
          ok: ours.median >= AT_LEAST,
          notes: [],
        },
      ];
    } finally {
      await secrets.delete(BUNDLE);
    }
  },
};
