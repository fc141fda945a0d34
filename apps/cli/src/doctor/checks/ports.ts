import { once } from 'node:events';
import { createServer } from 'node:net';
import { type Check, fail, ok } from '../finding.ts';

/** Whether the control plane can listen. */
export const portsCheck: Check = {
  name: 'port',
  run: async ({ config, service }) => {
    const { host, port } = config.listen;
    const address = `${host}:${port}`;
    if (service !== undefined) return ok('port', `${address} serves`);
    const server = createServer();
    try {
      server.listen({ host, port });
      await once(server, 'listening');
      return ok('port', `${address} is free`);
    } catch (error) {
      const { code = String(error) } = error as NodeJS.ErrnoException;
      return fail(
        'port',
        `${address} cannot be listened on (${code})`,
        'set SVC_LISTEN to another address',
      );
    } finally {
      server.close();
    }
  },
};
