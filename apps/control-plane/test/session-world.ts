import type { AgentSecrets, PlaceSandboxRequest } from '@svc/contract';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { type Answer, type Call, Harness, sessionRequest } from './harness.ts';

/** The reason of a refusal, the changes to a valid request, and the expected answer. */
export type Refusal = [what: string, changes: object, status: number, code: string];

/** The bundles of the tenant, by name. */
const BUNDLES = {
  llm: { LLM_API_KEY: 'key-1', TOKEN: 'value-1' },
  'other-llm': { LLM_API_KEY: 'key-2' },
  extra: { EXTRA: 'value-2' },
  model: { LLM_MODEL: 'model-of-bundle' },
  'bad-model': { LLM_MODEL: 'no model' },
  base: { LLM_BASE_URL: 'https://llm.internal:8443/v1' },
};

/** A tenant with secret bundles that creates sessions, and the worker that gets them. */
class SessionWorld implements AsyncDisposable {
  readonly harness: Harness;
  readonly account: Awaited<ReturnType<Harness['signUp']>>;
  #worker: WorkerDouble | undefined;

  private constructor(harness: Harness, account: Awaited<ReturnType<Harness['signUp']>>) {
    this.harness = harness;
    this.account = account;
  }

  static async start(): Promise<SessionWorld> {
    const harness = await Harness.start({
      SVC_EGRESS_ALLOW_HOSTS: 'llm.internal:8443',
      SVC_RUNTIME_URL: 'wss://runtime.example.com',
      SVC_MODEL_GOOGLE: 'gemini-of-the-operator',
    });
    const account = await harness.signUp();
    for (const [name, values] of Object.entries(BUNDLES)) {
      await harness.addBundle(account.key, name, values);
    }
    return new SessionWorld(harness, account);
  }

  get worker(): WorkerDouble {
    if (this.#worker === undefined) throw new Error('reset makes it');
    return this.#worker;
  }

  /** The last creation that the worker received. */
  get placed(): PlaceSandboxRequest {
    const last = this.worker.placed.at(-1);
    if (last === undefined) throw new Error('nothing was placed');
    return last;
  }

  /** Removes every session and replaces the worker. */
  async reset(): Promise<void> {
    await this.harness.reset();
    this.#worker = await this.harness.addWorker('w1');
  }

  create(changes: object = {}, call: Call = {}): Promise<Answer> {
    const json = sessionRequest(changes);
    return this.harness.call('POST', '/v1/sessions', { key: this.account.key, json, ...call });
  }

  /** The secrets that the worker gets for the agent of a sandbox. */
  async secretsOf(vmId: string): Promise<AgentSecrets> {
    const path = `/sandboxes/${vmId}/agent-secrets`;
    const answer = await this.worker.ask(this.harness.plane.url, 'GET', path);
    return (await answer.json()) as AgentSecrets;
  }

  /** Expects a refused creation that leaves nothing behind. */
  async expectRefused(changes: object, status: number, code: string): Promise<void> {
    const answer = await this.create(changes);
    expect(answer.body).toMatchObject({ status, code });
    expect(answer.status).toBe(status);
    expect(this.worker.placed).toEqual([]);
    expect(await this.count('sessions')).toBe(0);
  }

  /** The number of rows of a table. */
  async count(table: 'sessions' | 'sandboxes' | 'agent_secrets'): Promise<number | null> {
    return (await this.harness.sql.query(`select 1 from ${table}`)).rowCount;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.harness[Symbol.asyncDispose]();
  }
}

/** A world for the tests of one file. Each test starts without sessions and with a new worker. */
export function useSessionWorld(): () => SessionWorld {
  let world: SessionWorld | undefined;
  const get = () => {
    if (world === undefined) throw new Error('only while tests run');
    return world;
  };
  beforeAll(async () => {
    world = await SessionWorld.start();
  });
  beforeEach(() => get().reset());
  afterAll(() => world?.[Symbol.asyncDispose]());
  return get;
}
