import type { AgentContext, AgentSession, StartAgent } from '../agents/agent.ts';

/** How long an agent may take to start, in milliseconds: a vendor's CLI, on an emulated CPU, takes its time. */
const START_MS = 120_000;

export interface AgentHolderOptions {
  readonly load: () => Promise<StartAgent>;
  /** The context, with the conversation that the agent goes on from. */
  readonly context: (conversation: string | undefined) => AgentContext;
  readonly conversation: string | undefined;
  /** Told once for each start that failed. */
  readonly onFailed: (error: unknown) => void;
  /** Default 2 minutes. */
  readonly startMs?: number;
}

/** The agent of a session: started once, started anew after it was lost. */
export class AgentHolder {
  readonly #options: AgentHolderOptions;
  #conversation: string | undefined;
  #session: AgentSession | undefined;
  #starting: Promise<AgentSession | undefined> | undefined;

  constructor(options: AgentHolderOptions) {
    this.#options = options;
    this.#conversation = options.conversation;
  }

  /** The running agent, after starting it if need be. Undefined when it cannot be started: the session has been told. */
  async running(): Promise<AgentSession | undefined> {
    if (this.#session !== undefined) return this.#session;
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  /** The conversation so far, the last known one when the agent does not run. */
  conversation(): string {
    this.#conversation = this.#session?.conversation() ?? this.#conversation;
    return this.#conversation ?? '';
  }

  /** Ends the agent, so that the next task starts it anew from where it was. */
  async close(): Promise<void> {
    this.conversation();
    const session = this.#session;
    this.#session = undefined;
    await session?.close();
  }

  async #start(): Promise<AgentSession | undefined> {
    const { load, context, onFailed, startMs = START_MS } = this.#options;
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(new Error('it does not become ready')), startMs);
    const started = load().then((start) => start(context(this.#conversation)));
    try {
      this.#session = await Promise.race([started, late.promise]);
      return this.#session;
    } catch (error) {
      onFailed(error);
      // One that becomes ready after all has no place any more.
      started.then((session) => session.close()).catch(() => undefined);
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }
}
