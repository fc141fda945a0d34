// A control plane in a process of its own, on a database that is given.
import { loadConfig } from '@svc/config';
import { ClusterSecrets, startControlPlane } from '@svc/control-plane';
import { createLogger, Secret } from '@svc/service-kit';

/** The only argument, as JSON. */
export interface ControlPlaneOptions {
  readonly databaseUrl: string;
  readonly dataDir: string;
  readonly secret: string;
}

const options = JSON.parse(process.argv[2] ?? '') as ControlPlaneOptions;
const plane = await startControlPlane({
  config: loadConfig({
    SVC_DATA_DIR: options.dataDir,
    SVC_TLS: 'off',
    SVC_LISTEN: '127.0.0.1:0',
  }),
  logger: createLogger({ level: 'error' }),
  clusterSecrets: await ClusterSecrets.open([new Secret(options.secret)]),
  database: { url: options.databaseUrl, close: async () => undefined },
});
process.send?.(Number(new URL(plane.url).port));
process.once('disconnect', () => process.exit());
