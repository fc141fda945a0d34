import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { MODEL_HOST, modelTls } from '../models.ts';

/** A request that the endpoint received. */
export interface PersistenceRequest {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown> | undefined;
}

/** A customer's endpoint for agent state. Stores the last body put to each path. */
export interface PersistenceEndpoint {
  readonly url: string;
  readonly requests: readonly PersistenceRequest[];
  close(): Promise<void>;
}

/** Starts an endpoint on the address of the scripted models. */
export async function startPersistenceEndpoint(): Promise<PersistenceEndpoint> {
  const { cert, key } = await modelTls();
  const stored = new Map<string, Buffer>();
  const requests: PersistenceRequest[] = [];
  const server = createServer({ cert, key }, async (request, response) => {
    const { method, url: path = '', headers } = request;
    const bytes = await buffer(request);
    const body = bytes.length === 0 ? undefined : JSON.parse(bytes.toString());
    requests.push({ method, path, headers, body });
    if (method === 'PUT') {
      stored.set(path, bytes);
      response.writeHead(204).end();
    } else {
      const last = stored.get(path);
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
