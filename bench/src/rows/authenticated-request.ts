import { fileURLToPath } from 'node:url';
import { forkServer } from '../bare/forked-server.ts';
import { inTurns } from '../measure/in-turns.ts';
import { requestsPerSecond, WARM_UP_ROUNDS } from '../measure/request-rate.ts';
import { type Row, ratioResult } from '../measure/row.ts';

const NO_OP_ROUTE = fileURLToPath(new URL('../bare/no-op-route.ts', import.meta.url));
const AT_LEAST = 0.7;

/** What looking up the API key costs, request for request. */
export const authenticatedRequest: Row = {
  name: 'authenticated-request',
  pool: 2,
  async run({ service, runs, progress }) {
    const server = await forkServer(NO_OP_ROUTE, service.dataDir);
    try {
      await service.settled();
      const samples = await inTurns({
        runs,
        warmUps: WARM_UP_ROUNDS,
        ours: () => requestsPerSecond(`${server.baseUrl}/authenticated`, service),
        comparison: () => requestsPerSecond(`${server.baseUrl}/open`, service),
        onTurn: (done) => progress(`${done}/${runs}`),
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
