import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { SvcClient } from '@svc/sdk';
import { withDeadline } from '@svc/service-kit/concurrency';
import { until } from '../measure/conditions.ts';
import type { BenchModels } from '../sessions/bench-models.ts';
import { type ServiceMachine, serviceMachines } from './machines.ts';
import { cpuMs } from './process-figures.ts';

const MAIN = fileURLToPath(new URL('../../../apps/cli/src/main.ts', import.meta.url));
const TEMPLATE = 'standard';
const START_MS = 900_000;
const STOP_MS = 120_000;
const QUIET_WINDOW_MS = 200;
const QUIET_CPU_MS = 20;

interface Credentials {
  readonly base_url: string;
  readonly api_key: string;
  readonly ca_file: string;
}

/** A whole service on a data directory of its own, as `svc up` starts it. */
export class BenchService {
  readonly dataDir: string;
  readonly imageDir: string;
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly ca: string;
  readonly client: SvcClient;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #pool: number;

  private constructor(
    child: ChildProcess,
    places: { readonly dataDir: string; readonly imageDir: string },
    credentials: Credentials,
    ca: string,
    pool: number,
  ) {
    this.#child = child;
    this.pid = child.pid ?? 0;
    this.dataDir = places.dataDir;
    this.imageDir = places.imageDir;
    this.baseUrl = credentials.base_url;
    this.apiKey = credentials.api_key;
    this.ca = ca;
    this.client = new SvcClient({ baseUrl: this.baseUrl, apiKey: this.apiKey, ca });
    this.#pool = pool;
  }

  /**
   * Starts it with `pool` idle sandboxes and leave to call the scripted models, else as in a normal install, and waits until it is
   * ready. It ends when `signal` aborts.
   */
  static async start(
    dataDir: string,
    pool: number,
    models: BenchModels,
    signal: AbortSignal,
  ): Promise<BenchService> {
    signal.throwIfAborted();
    await mkdir(dataDir, { recursive: true });
    const imageDir = process.env.SVC_IMAGE_DIR ?? join(cacheDirectory(), 'svc/images');
    const output = await open(join(dataDir, 'bench.log'), 'w');
    const child = spawn(process.execPath, [MAIN, 'up'], {
      stdio: ['ignore', output.fd, output.fd, 'ipc'],
      env: {
        ...withoutServiceVariables(process.env),
        SVC_DATA_DIR: dataDir,
        SVC_IMAGE_DIR: imageDir,
        SVC_LISTEN: 'localhost:0',
        SVC_RUNTIME_LISTEN: 'localhost:0',
        SVC_POOL: `${TEMPLATE}=${pool}`,
        SVC_TEMPLATES: TEMPLATE,
        ...models.environment,
      },
    });
    await output.close();
    // Whatever is under way fails then, and what was set up is taken down.
    signal.addEventListener('abort', () => child.kill('SIGTERM'), { once: true });
    await ready(child, dataDir);
    const credentials = JSON.parse(
      await readFile(join(dataDir, 'credentials.json'), 'utf8'),
    ) as Credentials;
    const ca = await readFile(credentials.ca_file, 'utf8');
    return new BenchService(child, { dataDir, imageDir }, credentials, ca, pool);
  }

  /** Creates a sandbox that outlives the row that uses it. */
  async createSandbox(): Promise<{
    readonly id: string;
    readonly host: string;
    readonly port: number;
  }> {
    const { vm_id: id, endpoint = '' } = await this.client.sandboxes.create({
      template: TEMPLATE,
      idle_timeout_seconds: 7200,
    });
    const [host = '', port = ''] = endpoint.split(':');
    return { id, host, port: Number(port) };
  }

  /** What runs the VMs: `kvm` or `tcg`. */
  async accelerator(): Promise<string> {
    const record = await readFile(join(this.dataDir, 'service.json'), 'utf8');
    const { workers } = JSON.parse(record) as { workers: readonly { accelerator: string }[] };
    return workers[0]?.accelerator ?? 'none';
  }

  /** The VMs of this service. */
  machines(): Promise<ServiceMachine[]> {
    return serviceMachines(this.dataDir);
  }

  /** Waits until the pool is full and the service does nothing, so that a measurement meets no work of before. */
  async settled(): Promise<void> {
    await until('the pool is full', async () => {
      if (this.#hasEnded()) throw new Error('the service has ended');
      const machines = await this.machines();
      return machines.filter(({ role }) => role === 'pool').length >= this.#pool;
    });
    await until('the service is quiet', async () => {
      const before = await cpuMs(this.pid, true);
      await sleep(QUIET_WINDOW_MS);
      return (await cpuMs(this.pid, true)) - before <= QUIET_CPU_MS;
    });
  }

  /** Ends it in order, its sandboxes too. */
  async stop(): Promise<void> {
    await this.client.close();
    if (this.#hasEnded()) return;
    const exited = once(this.#child, 'exit', { signal: AbortSignal.timeout(STOP_MS) });
    this.#child.kill('SIGTERM');
    await exited;
  }

  #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
}

async function ready(child: ChildProcess, dataDir: string): Promise<void> {
  const settled = new AbortController();
  const signal = withDeadline(settled.signal, START_MS);
  try {
    await Promise.race([
      once(child, 'message', { signal }),
      once(child, 'exit', { signal }).then(([code]) => {
        throw new Error(`the service did not start (exit code ${code}); see ${dataDir}/bench.log`);
      }),
    ]);
  } finally {
    settled.abort();
  }
}

/** The bench measures a normal install: settings of the person who runs it do not reach it. */
function withoutServiceVariables(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !name.startsWith('SVC_')),
  );
}

function cacheDirectory(): string {
  return process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
}
