import { type Listener, listenFailure, publicListeners } from '../../service/start/ports.ts';
import { type Check, type Finding, fail, ok } from '../finding.ts';

/** Whether control plane and runtime host can listen. */
export const portsCheck: Check = {
  name: 'port',
  run: async ({ config, service }) =>
    Promise.all(publicListeners(config).map((listener) => look(listener, service !== undefined))),
};

async function look(listener: Listener, isServing: boolean): Promise<Finding> {
  const { setting, host, port } = listener;
  const address = `${host}:${port}`;
  if (isServing) return ok('port', `${address} serves`);
  const failure = await listenFailure(listener);
  if (failure === undefined) return ok('port', `${address} is free`);
  const detail = `${address} cannot be listened on (${failure})`;
  return fail('port', detail, `set ${setting} to another address`);
}
