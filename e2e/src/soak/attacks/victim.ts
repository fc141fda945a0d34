import { setTimeout as delay } from 'node:timers/promises';
import { type ModelServer, startModelServer } from '@svc/model-server';
import type { Access } from '../../../test/access.ts';
import { SessionClient } from '../../../test/sessions/session-client.ts';
import type { Account } from '../../../test/sign-up.ts';
import { Latencies } from './latencies.ts';

/** The operations of a customer whose times are compared. */
export const MEASURED = ['create', 'exec', 'turn'] as const;
export type Measured = (typeof MEASURED)[number];

/**
 * A round begins this often, whether the one before was fast or slow: a customer who began the next one at once would keep the
 * machine busy alone, and would use it less while it is slow.
 */
const ROUND_MS = 5_000;

/** An agent that runs a command in each turn. */
export const MODEL_SCRIPT = {
  rules: [
    { when: { tool: '(\\S*)' }, reply: { text: 'Done.' } },
    {
      when: { user: 'run: (.*)' },
      reply: { tool_calls: [{ name: 'shell', arguments: { command: '$1' } }] },
    },
  ],
};

/** Starts a scripted model for the sessions of the victim and of the attacker. */
export function startModel(
  host: string,
  tls: Parameters<typeof startModelServer>[0]['tls'],
): Promise<ModelServer> {
  return startModelServer({ script: MODEL_SCRIPT, host, ...(tls === undefined ? {} : { tls }) });
}

/** Starts a session of an account with a scripted model, and attaches to it. */
export async function startSession(
  { client }: Pick<Account, 'client'>,
  models: Pick<ModelServer, 'url'>,
): Promise<SessionClient> {
  const bundles = await client.secrets.list();
  if (bundles.length === 0) {
    await client.secrets.create('llm', { LLM_API_KEY: 'k', LLM_BASE_URL: models.url });
  }
  const session = await client.sessions.create({
    agent: { kind: 'deictic' },
    app: { id: 'soak' },
    template: 'standard',
    llm: { vendor: 'anthropic', model: 'claude-sonnet-4-5' },
    secrets: ['llm'],
    user_id: 'soak',
  });
  return SessionClient.open(client, session);
}

/** A customer who uses the service steadily, whatever another one does. */
export class Victim {
  readonly account: Account;
  readonly #session: SessionClient;
  readonly #sandbox: string;
  #turns = 0;
  /** Operations that failed. */
  readonly failures: string[] = [];

  private constructor(account: Account, session: SessionClient, sandbox: string) {
    this.account = account;
    this.#session = session;
    this.#sandbox = sandbox;
  }

  static async start(access: Access, models: ModelServer): Promise<Victim> {
    const account = await access.signUp();
    const session = await startSession(account, models);
    const { vm_id } = await account.client.sandboxes.create({ template: 'standard' });
    const victim = new Victim(account, session, vm_id);
    // The first ones load what the later ones find in memory.
    await victim.#round(measured());
    return victim;
  }

  /** Measures round after round until `end` aborts. */
  async measureUntil(end: AbortSignal): Promise<Record<Measured, Latencies>> {
    const latencies = measured();
    while (!end.aborted) {
      const next = performance.now() + ROUND_MS;
      await this.#round(latencies);
      // It rejects only when `end` aborts.
      await delay(Math.max(0, next - performance.now()), undefined, { signal: end }).catch(
        () => undefined,
      );
    }
    return latencies;
  }

  async close(): Promise<void> {
    await this.#session.close();
  }

  async #round(latencies: Record<Measured, Latencies>): Promise<void> {
    const { sandboxes } = this.account.client;
    const created = await this.#try('create', () =>
      latencies.create.time(() => sandboxes.create({ template: 'standard' })),
    );
    if (created !== undefined) await this.#try('delete', () => sandboxes.delete(created.vm_id));
    for (let time = 0; time < 3; time += 1) {
      await this.#try('exec', () =>
        latencies.exec.time(() => sandboxes.exec(this.#sandbox, 'true')),
      );
    }
    this.#turns += 1;
    const id = `turn-${this.#turns}`;
    await this.#try('turn', () =>
      latencies.turn.time(() => this.#session.task(`run: echo ${id} > file`, id)),
    );
  }

  async #try<T>(name: string, operation: () => Promise<T>): Promise<T | undefined> {
    try {
      return await operation();
    } catch (error) {
      this.failures.push(`${name} of the victim: ${error}`);
      return undefined;
    }
  }
}

function measured(): Record<Measured, Latencies> {
  return { create: new Latencies(), exec: new Latencies(), turn: new Latencies() };
}
