import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CreateSandboxRequest, Template } from '@svc/contract';
import { SvcClient } from '@svc/sdk';
import {
  BUILT_IMAGES,
  cpuMs,
  PrivateService,
  readServiceRecord,
  type ServiceAddress,
  until,
  type VmRecord,
  vmRecords,
} from '@svc/service-driver';
import type { BenchModels } from '../sessions/bench-models.ts';

const TEMPLATE = 'standard' satisfies Template;
const QUIET_WINDOW_MS = 200;
const QUIET_CPU_MS = 20;
/** Longer than the worker takes to notice that an idle VM is to be warmed up. */
const REST_WINDOW_MS = 5_000;
/** Of an idle VM with a browser. */
const REST_CPU_MS = 500;
/** Polling costs a core time that a measurement right after it would miss. */
const POLL_MS = 100;

interface Credentials {
  readonly base_url: string;
  readonly api_key: string;
  readonly ca_file: string;
}

/** A private service with default settings, and a client with the operator's account. */
export class BenchService {
  readonly apiKey: string;
  readonly ca: string;
  readonly client: SvcClient;
  readonly #service: PrivateService;
  readonly #pool: number;

  private constructor(
    service: PrivateService,
    { apiKey, ca }: { readonly apiKey: string; readonly ca: string },
    pool: number,
  ) {
    this.#service = service;
    this.apiKey = apiKey;
    this.ca = ca;
    this.client = new SvcClient({ baseUrl: this.baseUrl, apiKey, ca });
    this.#pool = pool;
  }

  /**
   * Starts a service that has `pool` idle VMs of each of these templates, by default `standard`, and that may call the
   * scripted models. Resolves when it is ready. The service ends when `signal` aborts.
   */
  static async start(
    dataDir: string,
    pool: number,
    models: BenchModels,
    signal: AbortSignal,
    templates: readonly Template[] = [TEMPLATE],
  ): Promise<BenchService> {
    const service = await PrivateService.start({
      dataDir,
      signal,
      env: {
        SVC_IMAGE_DIR: BUILT_IMAGES,
        SVC_POOL: templates.map((template) => `${template}=${pool}`).join(','),
        SVC_TEMPLATES: templates.join(','),
        ...models.environment,
      },
    });
    const credentials = JSON.parse(
      await readFile(join(dataDir, 'credentials.json'), 'utf8'),
    ) as Credentials;
    const ca = await readFile(credentials.ca_file, 'utf8');
    return new BenchService(service, { apiKey: credentials.api_key, ca }, pool * templates.length);
  }

  get address(): ServiceAddress {
    return this.#service.address;
  }

  get baseUrl(): string {
    return this.address.baseUrl;
  }

  get dataDir(): string {
    return this.#service.dataDir;
  }

  get pid(): number {
    return this.#service.pid;
  }

  /** Creates a sandbox that outlives the row that uses it. */
  async createSandbox(
    more: Partial<
      Pick<CreateSandboxRequest, 'template' | 'workspace_enabled' | 'app_id' | 'capset_id'>
    > = {},
  ): Promise<{
    readonly id: string;
    readonly host: string;
    readonly port: number;
  }> {
    const { vm_id: id, endpoint = '' } = await this.client.sandboxes.create({
      template: TEMPLATE,
      idle_timeout_seconds: 7200,
      ...more,
    });
    const [host = '', port = ''] = endpoint.split(':');
    return { id, host, port: Number(port) };
  }

  /** The accelerator of the service's VMs: `kvm` or `tcg`. */
  async accelerator(): Promise<string> {
    const record = await readServiceRecord(this.dataDir);
    return record?.workers?.[0]?.accelerator ?? 'none';
  }

  /** The VMs of this service. */
  vms(): Promise<VmRecord[]> {
    return vmRecords(this.dataDir);
  }

  /** Waits until the pool is full and the service is idle, so that earlier work does not affect a measurement. */
  async settled(): Promise<void> {
    await until(
      'the pool is full',
      async () => {
        if (this.#service.hasEnded) throw new Error('the service has ended');
        const vms = await this.vms();
        return vms.filter(({ role }) => role === 'pool').length >= this.#pool;
      },
      { intervalMs: POLL_MS },
    );
    await until(
      'the service is idle',
      async () => {
        const before = await cpuMs(this.pid, true);
        await sleep(QUIET_WINDOW_MS);
        return (await cpuMs(this.pid, true)) - before <= QUIET_CPU_MS;
      },
      { intervalMs: POLL_MS },
    );
  }

  /** Waits until the service is settled and the VMs of the pool rest, because they have warmed up. */
  async rested(): Promise<void> {
    await this.settled();
    const used = async () => {
      const idle = (await this.vms()).filter(({ role }) => role === 'pool');
      const times = await Promise.all(idle.map(({ pid }) => (pid === undefined ? 0 : cpuMs(pid))));
      return times.reduce((sum, time) => sum + time, 0);
    };
    await until('the pool rests', async () => {
      const before = await used();
      await sleep(REST_WINDOW_MS);
      return (await used()) - before <= REST_CPU_MS * this.#pool;
    });
  }

  /** Ends the service and its sandboxes. */
  async stop(): Promise<void> {
    await this.client.close();
    await this.#service[Symbol.asyncDispose]();
  }
}
