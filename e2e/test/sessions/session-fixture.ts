import { randomUUID } from 'node:crypto';
import type { Agent, CreateSessionRequest, LlmVendor, SessionAccess } from '@svc/contract';
import { type ModelServer, type Script, startModelServer } from '@svc/model-server';
import { afterAll, beforeAll } from 'vitest';
import type { Access } from '../access.ts';
import { MODEL_HOST, modelTls } from '../models.ts';
import { shared } from '../shared-service.ts';
import type { Account } from '../sign-up.ts';
import { SessionClient } from './session-client.ts';

/** The model that each agent uses. */
export const MODELS: Readonly<
  Record<Agent, { readonly vendor: LlmVendor; readonly model: string }>
> = {
  deictic: { vendor: 'anthropic', model: 'claude-sonnet-4-5' },
  'claude-code': { vendor: 'anthropic', model: 'claude-sonnet-4-5' },
  codex: { vendor: 'openai', model: 'gpt-5.1-codex' },
};

/** A scripted model, an account whose secret bundle `llm` names it, and the sessions that a test creates with them. */
export class SessionFixture {
  readonly account: Account;
  readonly models: ModelServer;
  /** The customer's API key for the model, which no sandbox may ever hold. */
  readonly key: string;
  readonly #sessions: string[] = [];
  readonly #clients: SessionClient[] = [];

  private constructor(account: Account, models: ModelServer, key: string) {
    this.account = account;
    this.models = models;
    this.key = key;
  }

  static async start(script: Script, access: Access = shared): Promise<SessionFixture> {
    const models = await startModelServer({ script, host: MODEL_HOST, tls: await modelTls() });
    const account = await access.signUp();
    const key = `sk-canary-${randomUUID()}`;
    await account.client.secrets.create('llm', { LLM_API_KEY: key, LLM_BASE_URL: models.url });
    return new SessionFixture(account, models, key);
  }

  get sessions() {
    return this.account.client.sessions;
  }

  /** Creates a session with an agent. {@link end} deletes it. */
  async create(agent: Agent, more: Partial<CreateSessionRequest> = {}): Promise<SessionAccess> {
    const session = await this.sessions.create({
      agent: { kind: agent },
      app: { id: 'e2e' },
      template: 'standard',
      llm: MODELS[agent],
      secrets: ['llm'],
      user_id: 'e2e',
      ...more,
    });
    this.#sessions.push(session.chat_session_id);
    return session;
  }

  /** Attaches a client to a session and waits for `ready`. {@link end} closes it. */
  async attach(session: SessionAccess, afterSeq?: number): Promise<SessionClient> {
    const client = await SessionClient.open(this.account.client, session, afterSeq);
    this.#clients.push(client);
    return client;
  }

  /** Connects a client to the agent of a sandbox and waits for `ready`. {@link end} closes it. */
  async attachTo(vmId: string, afterSeq?: number): Promise<SessionClient> {
    const options = afterSeq === undefined ? {} : { afterSeq };
    const client = await SessionClient.of(
      await this.account.client.sandboxes.connect(vmId, options),
    );
    this.#clients.push(client);
    return client;
  }

  /** The sandbox in which a session runs. */
  async sandboxOf(session: SessionAccess): Promise<string> {
    const { vm_id } = await this.sessions.get(session.chat_session_id);
    if (vm_id === undefined) throw new Error(`${session.chat_session_id} has no sandbox`);
    return vm_id;
  }

  async end(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
    await Promise.all(this.#sessions.map((id) => this.sessions.delete(id)));
    await this.account.client.close();
    await this.models.close();
  }
}

/** Starts a fixture on the shared service for all tests of a file. */
export function useSessionFixture(script: Script): () => SessionFixture {
  let fixture: SessionFixture | undefined;
  beforeAll(async () => {
    fixture = await SessionFixture.start(script);
  });
  afterAll(() => fixture?.end());
  return () => {
    if (fixture === undefined) throw new Error('the fixture exists only while tests run');
    return fixture;
  };
}
