import type { AgentSecrets, ConfigUpdate, PlacedAgent } from '@svc/contract';
import { Mutex } from '@svc/service-kit/concurrency';
import { environmentOf, llmOf } from '../agents/setup.ts';
import type { SessionApi } from '../control-plane/session-api.ts';
import { AgentSession, type AgentSessionParts } from './agent-session.ts';

/** An agent that belongs to a session. */
export type PlacedSession = PlacedAgent & {
  readonly session: NonNullable<PlacedAgent['session']>;
};

/** One start of a session. */
export class Session extends AgentSession {
  readonly #parts: AgentSessionParts;
  readonly #api: Pick<SessionApi, 'agentSecrets'>;
  readonly #configuring = new Mutex();
  /** The newest version of each bundle that clients have been told of. */
  readonly #announced: Map<string, number>;

  constructor(parts: AgentSessionParts, api: Pick<SessionApi, 'agentSecrets'>) {
    super(parts);
    this.#parts = parts;
    this.#api = api;
    this.#announced = new Map(parts.files.journal.versions);
  }

  updateConfig({ bundle, version, keys }: ConfigUpdate, signal: AbortSignal): Promise<void> {
    return this.#configuring.run(async () => {
      if ((this.#announced.get(bundle) ?? 0) >= version) return;
      const { problem } = await this.#refreshSecrets(signal);
      const update = { type: 'system', event: 'config_update', keys, bundle, version } as const;
      const error = { type: 'error', code: 'model_not_allowed', message: problem ?? '' } as const;
      const frames = problem === undefined ? [update] : [update, error];
      await this.#parts.pipeline.store(frames.map((frame) => ({ n: 0, frame })));
      this.#announced.set(bundle, version);
    });
  }

  /** Fetches the agent's secrets again, and replaces those in use. @throws ControlPlaneError */
  async refreshSecrets(signal: AbortSignal): Promise<void> {
    await this.#configuring.run(() => this.#refreshSecrets(signal));
  }

  /** Under the mutex, so that values which were fetched earlier never replace later ones. */
  async #refreshSecrets(signal: AbortSignal): Promise<AgentSecrets['llm']> {
    const { link, placed } = this.#parts;
    const secrets = await this.#api.agentSecrets(this.sandbox.id, signal);
    this.useSecrets(secrets);
    if (!this.closed.aborted) link.setValues(environmentOf(secrets, {}), llmOf(placed, secrets));
    return secrets.llm;
  }
}
