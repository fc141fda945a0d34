import type { CreateSandboxRequest } from '@svc/sdk';
import type { PrivateService, PrivateServiceOptions } from '@svc/service-driver';
import { afterAll, beforeAll } from 'vitest';
import { Access } from './access.ts';
import { type IdleState, idleState } from './machine/consistency.ts';
import { type InstanceNames, instanceOf } from './machine/instance.ts';
import { modelEnvironment } from './models.ts';
import type { Account } from './sign-up.ts';
import { startService } from './start-service.ts';

/** A request for a sandbox that outlives any test. */
export const LASTING = { template: 'standard', idle_timeout_seconds: 1800 } as const;

interface Started {
  readonly service: PrivateService;
  readonly access: Access;
  readonly account: Account;
  readonly instance: InstanceNames;
  readonly idle: IdleState;
}

/** A service that the tests of one file may break, and an account on it. */
export class OwnService {
  readonly #options: PrivateServiceOptions;
  readonly poolSize: number;
  #parts: Started | undefined;

  constructor(poolSize: number, options: PrivateServiceOptions = {}) {
    this.poolSize = poolSize;
    this.#options = options;
  }

  get service(): PrivateService {
    return this.#started.service;
  }
  get access(): Access {
    return this.#started.access;
  }
  get account(): Account {
    return this.#started.account;
  }
  get instance(): InstanceNames {
    return this.#started.instance;
  }
  /** The resources that the service held before the first sandbox was created. */
  get idle(): IdleState {
    return this.#started.idle;
  }
  get sandboxes() {
    return this.account.client.sandboxes;
  }
  get dataDir(): string {
    return this.instance.dataDir;
  }

  async start(): Promise<void> {
    const env = {
      SVC_POOL: `standard=${this.poolSize}`,
      ...(await modelEnvironment()),
      ...this.#options.env,
    };
    const service = await startService({ ...this.#options, env });
    const access = new Access(service.address);
    const account = await access.signUp();
    const instance = await instanceOf(service.dataDir);
    const idle = await idleState(instance, this.poolSize);
    this.#parts = { service, access, account, instance, idle };
  }

  /** Crashes the service and starts it again on its data directory. */
  async crashAndStart(): Promise<void> {
    await this.service.kill();
    await this.service.startAgain();
  }

  /** Starts the service again after `svc down`, which released its instance number. */
  async startAgain(): Promise<void> {
    await this.service.startAgain();
    this.#parts = { ...this.#started, instance: await instanceOf(this.service.dataDir) };
  }

  async end(): Promise<void> {
    if (this.#parts === undefined) return;
    await this.account.client.close();
    await this.service[Symbol.asyncDispose]();
  }

  /** Creates a sandbox that outlives any test and returns its id. */
  async create(more: Partial<CreateSandboxRequest> = {}): Promise<string> {
    const { vm_id } = await this.sandboxes.create({ ...LASTING, ...more });
    return vm_id;
  }

  /** Runs a command and returns its output without surrounding white space. */
  async run(id: string, command: string): Promise<string> {
    const { output } = await this.sandboxes.exec(id, command, { timeoutMs: 300_000 });
    return output.trim();
  }

  get #started(): Started {
    if (this.#parts === undefined) throw new Error('the service has not been started');
    return this.#parts;
  }
}

/** Starts a service before the first test of a file and ends it after the last. */
export function ownService(poolSize: number, options?: PrivateServiceOptions): OwnService {
  const own = new OwnService(poolSize, options);
  beforeAll(() => own.start());
  afterAll(() => own.end());
  return own;
}
