import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isLoopback, listenAddress } from '@svc/service-kit/addresses';
import { servicePaths } from '../../service/paths.ts';
import {
  controlPlaneListeners,
  type Listener,
  listenFailure,
  runtimeListeners,
} from '../../service/start/ports.ts';
import { type Check, type Finding, fail, ok, warn } from '../findings.ts';

const DATABASE_TIMEOUT_MS = 5_000;
/** A certificate that ends within this time is reported. */
export const EXPIRES_SOON_MS = 14 * 86_400_000;

/** The settings, which are valid: with others, no check runs. */
export const settingsCheck: Check = {
  name: 'settings',
  run: async () => ok('settings', 'valid'),
};

/** Whether the control plane and the runtime host can listen on their addresses. */
export const portsCheck: Check = {
  name: 'port',
  run: async ({ config, service }) =>
    Promise.all(
      [...controlPlaneListeners(config), ...runtimeListeners(config)].map((listener) =>
        checkListener(listener, service !== undefined),
      ),
    ),
};

/** Whether strangers can reach the internal routes, which the cluster secret alone protects, and the metrics. */
export const internalRoutesCheck: Check = {
  name: 'internal routes',
  run: async ({ config: { listen, internalListen } }) => {
    if (internalListen !== undefined) return ok('internal routes', 'at SVC_INTERNAL_LISTEN alone');
    if (isLoopback(await listenAddress(listen.host))) {
      return ok('internal routes', 'on this machine alone');
    }
    return warn(
      'internal routes',
      'the public address serves the routes of workers and the metrics, too',
      'set SVC_INTERNAL_LISTEN to an address that only workers, runtime hosts and you can reach',
    );
  },
};

async function checkListener(listener: Listener, isServing: boolean): Promise<Finding> {
  const { setting, host, port } = listener;
  const address = `${host}:${port}`;
  if (isServing) return ok('port', `${address} is in use by the service`);
  const failure = await listenFailure(listener);
  if (failure === undefined) return ok('port', `${address} is free`);
  const detail = `cannot listen on ${address} (${failure})`;
  return fail('port', detail, `set ${setting} to another address`);
}

/** Whether the configured database server responds. The embedded one needs no check. */
export const databaseCheck: Check = {
  name: 'PostgreSQL',
  run: async ({ config }) => {
    if (config.databaseUrl === undefined) {
      return ok('PostgreSQL', 'embedded, in the data directory');
    }
    const { default: pg } = await import('pg');
    const client = new pg.Client({
      connectionString: config.databaseUrl.reveal(),
      connectionTimeoutMillis: DATABASE_TIMEOUT_MS,
      query_timeout: DATABASE_TIMEOUT_MS,
    });
    try {
      await client.connect();
      const { rows } = await client.query<{ server_version: string }>('show server_version');
      return ok('PostgreSQL', `${rows[0]?.server_version}, the server of SVC_DATABASE_URL`);
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error);
      return fail(
        'PostgreSQL',
        `does not respond: ${cause}`,
        'check SVC_DATABASE_URL and the server',
      );
    } finally {
      await client.end().catch(() => undefined);
    }
  },
};

/** The TLS certificate of the control plane. */
export const certificateCheck: Check = {
  name: 'certificate',
  run: async ({ config }) => {
    if (!config.tls) return ok('certificate', 'none: plain HTTP, for use behind a proxy');
    const file = config.tlsCertFile ?? join(servicePaths(config.dataDir).tls, 'server.pem');
    const pem = await readFile(file, 'utf8').catch(() => undefined);
    if (pem === undefined) {
      return config.tlsCertFile === undefined
        ? ok('certificate', 'the first start creates a local CA')
        : fail('certificate', `cannot read ${file}`, 'correct SVC_TLS_CERT_FILE');
    }
    const end = new X509Certificate(pem).validToDate;
    const shown = `${file}, valid until ${end.toISOString().slice(0, 10)}`;
    if (end.getTime() - Date.now() > EXPIRES_SOON_MS) return ok('certificate', shown);
    return warn(
      'certificate',
      `${shown}: expires soon`,
      'renew it; the next start renews a local one',
    );
  },
};
