import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { MODEL_HOST, modelTls } from '../support/models.ts';

/** A request that the endpoint got. */
export interface StateRequest {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown> | undefined;
}

/** A customer's endpoint for the state of agents: keeps for each path what was put there last. */
export interface StateEndpoint {
  readonly url: string;
  readonly requests: readonly StateRequest[];
  close(): Promise<void>;
}

/** Starts one where the scripted models listen too. */
export async function startStateEndpoint(): Promise<StateEndpoint> {
  const { cert, key } = await modelTls();
  const kept = new Map<string, Buffer>();
  const requests: StateRequest[] = [];
  const server = createServer({ cert, key }, async (request, response) => {
    const { method, url: path = '', headers } = request;
    const bytes = await buffer(request);
    const body = bytes.length === 0 ? undefined : JSON.parse(bytes.toString());
    requests.push({ method, path, headers, body });
    if (method === 'PUT') {
      kept.set(path, bytes);
      response.writeHead(204).end();
    } else {
      const last = kept.get(path);
      response.writeHead(last === undefined ? 404 : 200).end(last);
    }
  });
  server.listen(0, MODEL_HOST);
  await once(server, 'listening');
  return {
    url: `https://${MODEL_HOST}:${(server.address() as AddressInfo).port}`,
    requests,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
