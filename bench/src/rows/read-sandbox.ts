import autocannon from 'autocannon';
import { startBareRoute } from '../bare/route-server.ts';
import { inTurns } from '../measure/in-turns.ts';
import { type Row, ratioResult } from '../measure/row.ts';

const CONNECTIONS = 50;
const ROUND_SECONDS = 2;
const AT_LEAST = 0.6;
/** The first rounds run code that is not optimised yet, on both sides. */
const WARM_UPS = 2;

/** Reading one sandbox, authenticated, against a bare route that does one SELECT. */
export const readSandbox: Row = {
  name: 'read-sandbox',
  pool: 2,
  async run({ service, runs, progress }) {
    const { id } = await service.createSandbox();
    const bare = await startBareRoute(service.dataDir);
    try {
      await service.settled();
      const samples = await inTurns({
        runs,
        warmUps: WARM_UPS,
        ours: () => requestsPerSecond(`${service.baseUrl}/v1/sandboxes/${id}`, service),
        comparison: () => requestsPerSecond(`${bare.baseUrl}/sandboxes/${id}`, service),
        onTurn: (done) => progress(`${done}/${runs}`),
      });
      return [
        ratioResult({
          name: this.name,
          what: `GET /v1/sandboxes/{id}, ${CONNECTIONS} connections`,
          against: 'bare Fastify route, one SELECT',
          unit: 'req/s',
          ...samples,
          atLeast: AT_LEAST,
          notes: [`both over HTTPS with kept connections; each run is ${ROUND_SECONDS} s of load`],
        }),
      ];
    } finally {
      await bare.close();
      await service.client.sandboxes.delete(id);
    }
  },
};

async function requestsPerSecond(
  url: string,
  { apiKey, ca }: { readonly apiKey: string; readonly ca: string },
): Promise<number> {
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    duration: ROUND_SECONDS,
    headers: { authorization: `Bearer ${apiKey}` },
    tlsOptions: { ca },
  });
  if (result.non2xx > 0 || result.errors > 0) {
    throw new Error(`${result.non2xx} failures and ${result.errors} errors from ${url}`);
  }
  return result['2xx'] / result.duration;
}
