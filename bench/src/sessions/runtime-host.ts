import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '@svc/service-kit/testing';
import { until } from '../measure/conditions.ts';
import type { BenchService } from '../service/bench-service.ts';

const MAIN = fileURLToPath(new URL('../../../apps/cli/src/main.ts', import.meta.url));

/** A runtime host in a process of its own. */
export interface BenchRuntimeHost {
  readonly pid: number;
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts `svc runtime` for a service and waits until it serves. */
export async function startRuntimeHost(
  service: BenchService,
  scratch: string,
): Promise<BenchRuntimeHost> {
  const port = await freePort();
  const dataDir = join(scratch, 'runtime');
  const secret = await readFile(join(service.dataDir, 'cluster-secret'), 'utf8');
  const child = spawn(process.execPath, [MAIN, 'runtime'], {
    stdio: 'ignore',
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      SVC_DATA_DIR: dataDir,
      SVC_CONTROL_PLANE_URL: service.baseUrl,
      SVC_CA_FILE: join(service.dataDir, 'tls/ca.pem'),
      SVC_CLUSTER_SECRET: secret.trim(),
      SVC_RUNTIME_LISTEN: `localhost:${port}`,
      SVC_TLS_CERT_FILE: join(service.dataDir, 'tls/server.pem'),
      SVC_TLS_KEY_FILE: join(service.dataDir, 'tls/server-key.pem'),
    },
  });
  await until('the runtime host serves', async () => {
    if (child.exitCode !== null) throw new Error(`svc runtime ended with ${child.exitCode}`);
    const record = await readFile(join(dataDir, 'service.json'), 'utf8').catch(() => '{}');
    return (JSON.parse(record) as { state?: string }).state === 'ready';
  });
  return {
    pid: child.pid ?? 0,
    port,
    stop: async () => {
      if (child.exitCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
    },
  };
}
