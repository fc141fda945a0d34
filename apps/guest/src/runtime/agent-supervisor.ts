import type { AgentLlm } from '@svc/contract';
import type { AgentContext, AgentSession, StartAgent } from '../agents/agent.ts';

/** Time limit for the start of an agent, in milliseconds. A vendor's CLI is slow to start on an emulated CPU. */
const START_MS = 120_000;

export interface AgentSupervisorOptions {
  readonly load: () => Promise<StartAgent>;
  /** The agent's context, with the conversation to continue. */
  readonly context: (conversation: string | undefined) => AgentContext;
  /** The model for `context`. An agent that runs with another one is replaced. */
  readonly llm: () => AgentLlm;
  readonly conversation: string | undefined;
  /** Called once per failed start. */
  readonly onFailed: (error: unknown) => void;
  /** Default 2 minutes. */
  readonly startMs?: number;
}

/** Starts the agent of a session, and starts another for the next task after it was closed or its model has changed. */
export class AgentSupervisor {
  readonly #options: AgentSupervisorOptions;
  #conversation: string | undefined;
  #session: AgentSession | undefined;
  /** The model of the session. */
  #llm: AgentLlm | undefined;
  #starting: Promise<AgentSession | undefined> | undefined;

  constructor(options: AgentSupervisorOptions) {
    this.#options = options;
    this.#conversation = options.conversation;
  }

  /**
   * The agent with the current model, started if necessary. To be called between tasks only. Undefined when the start
   * fails, which `onFailed` reports.
   */
  async started(): Promise<AgentSession | undefined> {
    for (;;) {
      if (this.#session !== undefined && this.#llm === this.#options.llm()) return this.#session;
      this.#starting ??= this.#restart().finally(() => {
        this.#starting = undefined;
      });
      if ((await this.#starting) === undefined) return undefined;
    }
  }

  /** The conversation so far; the last known one while no agent runs. */
  conversation(): string {
    this.#conversation = this.#session?.conversation() ?? this.#conversation;
    return this.#conversation ?? '';
  }

  /** Ends the agent. The next task starts another, which continues the conversation. */
  async close(): Promise<void> {
    this.conversation();
    const session = this.#session;
    this.#session = undefined;
    await session?.close();
  }

  async #restart(): Promise<AgentSession | undefined> {
    await this.close().catch(this.#options.onFailed);
    return this.#start();
  }

  async #start(): Promise<AgentSession | undefined> {
    const { load, context, onFailed, startMs = START_MS } = this.#options;
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(new Error('it did not become ready in time')),
      startMs,
    );
    const llm = this.#options.llm();
    const started = load().then((start) => start(context(this.#conversation)));
    try {
      this.#session = await Promise.race([started, late.promise]);
      this.#llm = llm;
      return this.#session;
    } catch (error) {
      onFailed(error);
      // An agent that becomes ready later is not wanted any more.
      started.then((session) => session.close()).catch(() => undefined);
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }
}
