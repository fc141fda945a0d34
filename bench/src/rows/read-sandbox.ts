import { fileURLToPath } from 'node:url';
import { forkServer } from '../bare/forked-server.ts';
import { CONNECTIONS, ROUND_SECONDS, ratesInTurns } from '../measure/request-rate.ts';
import { type Row, ratioResult } from '../measure/row.ts';

const BARE_ROUTE = fileURLToPath(new URL('../bare/bare-route.ts', import.meta.url));
const AT_LEAST = 0.6;

/** Authenticated reads of one sandbox, compared with a bare route that does one SELECT. */
export const readSandbox: Row = {
  name: 'read-sandbox',
  pool: 2,
  async run(context) {
    const { service } = context;
    const { id } = await service.createSandbox();
    const bare = await forkServer(BARE_ROUTE, service.dataDir);
    try {
      await service.settled();
      const samples = await ratesInTurns(context, {
        ours: `${service.baseUrl}/v1/sandboxes/${id}`,
        comparison: `${bare.baseUrl}/sandboxes/${id}`,
      });
      return [
        ratioResult({
          name: this.name,
          what: `GET /v1/sandboxes/{id}, ${CONNECTIONS} connections`,
          against: 'bare Fastify route, one SELECT',
          unit: 'req/s',
          ...samples,
          atLeast: AT_LEAST,
          notes: [
            `both over HTTPS with persistent connections; each run is ${ROUND_SECONDS} s of load`,
          ],
        }),
      ];
    } finally {
      await bare.close();
      await service.client.sandboxes.delete(id);
    }
  },
};
