import { randomUUID } from 'node:crypto';
import type { Agent, CreateSessionRequest, LlmVendor, SessionAccess } from '@svc/contract';
import { type ModelServer, type Script, startModelServer } from '@svc/model-server';
import { afterAll, beforeAll } from 'vitest';
import type { Access } from '../support/access.ts';
import type { Account } from '../support/accounts.ts';
import { MODEL_HOST, modelTls } from '../support/models.ts';
import { shared } from '../support/shared-service.ts';
import { Talk } from './talk.ts';

/** What each agent is asked to speak with. */
export const MODELS: Readonly<
  Record<Agent, { readonly vendor: LlmVendor; readonly model: string }>
> = {
  deictic: { vendor: 'anthropic', model: 'claude-sonnet-4-5' },
  'claude-code': { vendor: 'anthropic', model: 'claude-sonnet-4-5' },
  codex: { vendor: 'openai', model: 'gpt-5.1-codex' },
};

/** A scripted model, and an account whose bundle `llm` names it. */
export class SessionWorld {
  readonly account: Account;
  readonly models: ModelServer;
  /** The customer's key: nothing in a sandbox may ever hold it. */
  readonly key: string;
  readonly #sessions: string[] = [];
  readonly #talks: Talk[] = [];

  private constructor(account: Account, models: ModelServer, key: string) {
    this.account = account;
    this.models = models;
    this.key = key;
  }

  static async start(script: Script, access: Access = shared): Promise<SessionWorld> {
    const models = await startModelServer({ script, host: MODEL_HOST, tls: await modelTls() });
    const account = await access.signUp();
    const key = `sk-canary-${randomUUID()}`;
    await account.client.secrets.create('llm', { LLM_API_KEY: key, LLM_BASE_URL: models.url });
    return new SessionWorld(account, models, key);
  }

  get sessions() {
    return this.account.client.sessions;
  }

  /** A request for a session with an agent. */
  request(agent: Agent, more: Partial<CreateSessionRequest> = {}): CreateSessionRequest {
    return {
      agent: { kind: agent },
      app: { id: 'e2e' },
      template: 'standard',
      llm: MODELS[agent],
      secrets: ['llm'],
      user_id: 'e2e',
      ...more,
    };
  }

  /** Starts a session; it is ended with the world. */
  async create(agent: Agent, more: Partial<CreateSessionRequest> = {}): Promise<SessionAccess> {
    const session = await this.sessions.create(this.request(agent, more));
    this.#sessions.push(session.chat_session_id);
    return session;
  }

  /** Attaches a client, which is closed with the world. */
  async attach(session: SessionAccess, afterSeq?: number): Promise<Talk> {
    const talk = await Talk.open(this.account.client, session, afterSeq);
    this.#talks.push(talk);
    return talk;
  }

  /** The sandbox that a session runs in. */
  async sandboxOf(session: SessionAccess): Promise<string> {
    const { vm_id } = await this.sessions.get(session.chat_session_id);
    if (vm_id === undefined) throw new Error(`${session.chat_session_id} has no sandbox`);
    return vm_id;
  }

  async end(): Promise<void> {
    for (const talk of this.#talks) await talk.close();
    for (const id of this.#sessions) await this.sessions.delete(id);
    await this.account.client.close();
    await this.models.close();
  }
}

/** A world for the tests of one file, on the shared service. */
export function useSessionWorld(script: Script): () => SessionWorld {
  let world: SessionWorld | undefined;
  beforeAll(async () => {
    world = await SessionWorld.start(script);
  });
  afterAll(() => world?.end());
  return () => {
    if (world === undefined) throw new Error('only while tests run');
    return world;
  };
}
