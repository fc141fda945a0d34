import { afterAll, beforeAll } from 'vitest';
import { type IdleState, idleState } from '../machine/consistency.ts';
import { type InstanceNames, instanceOf } from '../machine/instance.ts';
import type { Account } from '../support/accounts.ts';
import { modelEnvironment } from '../support/models.ts';
import { type Service, type StartServiceOptions, startService } from '../support/start-service.ts';

/** Long enough for sandboxes to outlive a test that takes its time. */
export const LASTING = { template: 'standard', idle_timeout_seconds: 1800 } as const;

/** A service that the tests of one file may break, with an account on it. */
export class OwnService {
  readonly #options: StartServiceOptions;
  readonly poolSize: number;
  #parts:
    | { service: Service; account: Account; instance: InstanceNames; idle: IdleState }
    | undefined;

  constructor(poolSize: number, options: StartServiceOptions = {}) {
    this.poolSize = poolSize;
    this.#options = options;
  }

  get service(): Service {
    return this.#started.service;
  }
  get account(): Account {
    return this.#started.account;
  }
  get instance(): InstanceNames {
    return this.#started.instance;
  }
  /** What it held before any sandbox was made. */
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
    const account = await service.signUp();
    const instance = await instanceOf(service.dataDir);
    const idle = await idleState(instance, this.poolSize);
    this.#parts = { service, account, instance, idle };
  }

  /** Crashes the service and starts it again on what that left. */
  async crashAndStart(): Promise<void> {
    await this.service.kill9();
    await this.service.startAgain();
  }

  /** Starts the service again after `svc down`, which gave back its place on the machine. */
  async startAgain(): Promise<void> {
    await this.service.startAgain();
    this.#parts = { ...this.#started, instance: await instanceOf(this.service.dataDir) };
  }

  async end(): Promise<void> {
    if (this.#parts === undefined) return;
    await this.account.client.close();
    await this.service[Symbol.asyncDispose]();
  }

  /** A sandbox that lasts. */
  async create(more: { max_lifetime_seconds?: number } = {}): Promise<string> {
    const { vm_id } = await this.sandboxes.create({ ...LASTING, ...more });
    return vm_id;
  }

  /** What a command prints. */
  async run(id: string, command: string): Promise<string> {
    const { output } = await this.sandboxes.exec(id, command, { timeoutMs: 300_000 });
    return output.trim();
  }

  get #started() {
    if (this.#parts === undefined) throw new Error('the service has not been started');
    return this.#parts;
  }
}

/** A service for the tests of this file, started before the first and ended after the last. */
export function ownService(poolSize: number, options?: StartServiceOptions): OwnService {
  const own = new OwnService(poolSize, options);
  beforeAll(() => own.start());
  afterAll(() => own.end());
  return own;
}
