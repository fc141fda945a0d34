import {
  type AgentFrame,
  type ConfigUpdate,
  FRAME_ERRORS,
  type FrameErrorCode,
  fitsEnvironment,
  type PlacedAgent,
} from '@svc/contract';
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
      const errors = await this.#refreshSecrets(signal);
      const update = { type: 'system', event: 'config_update', keys, bundle, version } as const;
      const frames = [update, ...errors];
      await this.#parts.pipeline.store(frames.map((frame) => ({ n: 0, frame })));
      this.#announced.set(bundle, version);
    });
  }

  /** Fetches the agent's secrets again, and replaces those in use. @throws ControlPlaneError */
  async refreshSecrets(signal: AbortSignal): Promise<void> {
    await this.#configuring.run(() => this.#refreshSecrets(signal));
  }

  /**
   * Under the mutex, so that values which were fetched earlier never replace later ones. Returns what clients are to be
   * told about values that cannot be used.
   */
  async #refreshSecrets(signal: AbortSignal): Promise<readonly AgentFrame[]> {
    const { link, placed } = this.#parts;
    const secrets = await this.#api.agentSecrets(this.sandbox.id, signal);
    this.useSecrets(secrets);
    const env = environmentOf(secrets, {});
    const fits = fitsEnvironment(env);
    if (!this.closed.aborted) link.setValues(fits ? env : undefined, llmOf(placed, secrets));
    const { problem } = secrets.llm;
    return [
      ...(problem === undefined ? [] : [errorFrame('model_not_allowed', problem)]),
      ...(fits ? [] : [errorFrame('secrets_too_large', FRAME_ERRORS.secrets_too_large)]),
    ];
  }
}

function errorFrame(code: FrameErrorCode, message: string): AgentFrame {
  return { type: 'error', code, message };
}
