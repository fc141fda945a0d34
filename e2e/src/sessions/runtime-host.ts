import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SessionAccess } from '@svc/contract';
import { freePort } from '@svc/service-kit/testing';
import type { Service } from '../support/start-service.ts';
import { until } from '../support/until.ts';

const SVC = fileURLToPath(new URL('../../../apps/cli/bin/svc.js', import.meta.url));

/** A runtime host in a process of its own, beside the one of the service. */
export interface RuntimeHost {
  readonly process: ChildProcess;
  readonly port: number;
  /** Where a client attaches to a session at this host. */
  urlOf(session: SessionAccess): string;
}

/** Starts `svc runtime` for a service, and waits until it serves. Whoever starts it ends it. */
export async function spawnRuntimeHost(service: Service, wanted?: number): Promise<RuntimeHost> {
  const port = wanted ?? (await freePort());
  const { baseUrl, caFile, dataDir } = service.address;
  const ownDirectory = await mkdtemp(join(tmpdir(), 'svc-e2e-runtime-'));
  const child = spawn(process.execPath, [SVC, 'runtime'], {
    stdio: 'ignore',
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      SVC_DATA_DIR: ownDirectory,
      SVC_CONTROL_PLANE_URL: baseUrl,
      SVC_CA_FILE: caFile,
      SVC_CLUSTER_SECRET: (await readFile(join(dataDir, 'cluster-secret'), 'utf8')).trim(),
      SVC_RUNTIME_LISTEN: `localhost:${port}`,
      SVC_TLS_CERT_FILE: join(dataDir, 'tls/server.pem'),
      SVC_TLS_KEY_FILE: join(dataDir, 'tls/server-key.pem'),
    },
  });
  child.once('exit', () => void rm(ownDirectory, { recursive: true, force: true }));
  await until('the runtime host serves', async () => {
    if (child.exitCode !== null) throw new Error(`svc runtime ended with ${child.exitCode}`);
    const record = await readFile(join(ownDirectory, 'service.json'), 'utf8').catch(() => '{}');
    return (JSON.parse(record) as { state?: string }).state === 'ready';
  });
  return {
    process: child,
    port,
    urlOf: ({ connect_url }) => {
      const url = new URL(connect_url);
      url.port = String(port);
      return url.href;
    },
  };
}
