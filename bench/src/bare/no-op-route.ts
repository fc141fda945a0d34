// Two routes that do nothing, on a server created like the control plane's: one behind its API key check, one without
// authentication.
import { readFile } from 'node:fs/promises';
import { DEFAULT_LIMITS, WORKER_TIMES } from '@svc/contract';
import { createApiKeyHook } from '@svc/control-plane';
import {
  createHttpServer,
  createLogger,
  createMetrics,
  registerHttpMetrics,
} from '@svc/service-kit';
import { openStore } from '@svc/store';
import type { ForkedServerOptions } from './forked-server.ts';

const options = JSON.parse(process.argv[2] ?? '') as ForkedServerOptions;
const store = await openStore({
  url: options.databaseUrl,
  placement: {
    unreachableMs: WORKER_TIMES.unreachableMs,
    sandboxesPerTenant: DEFAULT_LIMITS.sandboxesPerTenant,
  },
});
const app = createHttpServer({
  logger: createLogger({ level: 'warn' }),
  tls: {
    cert: await readFile(options.certificateFile, 'utf8'),
    key: await readFile(options.keyFile, 'utf8'),
  },
  browsers: { origins: [], secure: false },
});
registerHttpMetrics(app, createMetrics(), 'bench');
app.decorateRequest('caller', undefined);
app.get('/authenticated', { onRequest: createApiKeyHook(store) }, async () => ({ ok: true }));
app.get('/open', async () => ({ ok: true }));
await app.listen({ host: 'localhost', port: 0 });
process.send?.((app.server.address() as { port: number }).port);
process.once('disconnect', () => process.exit());
