import { fileURLToPath } from 'node:url';
import { forkServer } from '../bare/forked-server.ts';
import { ratesInTurns } from '../measure/request-rate.ts';
import { type Row, ratioResult } from '../measure/row.ts';

const NO_OP_ROUTE = fileURLToPath(new URL('../bare/no-op-route.ts', import.meta.url));
const AT_LEAST = 0.7;

/** The cost of the API key check per request. */
export const authenticatedRequest: Row = {
  name: 'authenticated-request',
  pool: 2,
  async run(context) {
    const { service } = context;
    const server = await forkServer(NO_OP_ROUTE, service.dataDir);
    try {
      await service.settled();
      const samples = await ratesInTurns(context, {
        ours: `${server.baseUrl}/authenticated`,
        comparison: `${server.baseUrl}/open`,
      });
      return [
        ratioResult({
          name: this.name,
          what: 'no-op request with an API key',
          against: 'the same without authentication',
          unit: 'req/s',
          ...samples,
          atLeast: AT_LEAST,
        }),
      ];
    } finally {
      await server.close();
    }
  },
};
