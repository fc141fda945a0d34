import type { CreateSessionRequest, ServerFrame, SessionAccess } from '@svc/contract';
import type { SessionConnection, SessionFrame } from '@svc/sdk';
import type { BenchService } from '../service/bench-service.ts';

const BUNDLE = 'bench';

const REQUEST: CreateSessionRequest = {
  agent: { kind: 'deictic' },
  app: { id: 'bench' },
  template: 'standard',
  llm: { vendor: 'anthropic', model: 'claude-sonnet-4-5' },
  secrets: [BUNDLE],
  user_id: 'bench',
};

/** Sessions of the bench's account with the scripted model. */
export class BenchSessions {
  readonly #service: BenchService;

  private constructor(service: BenchService) {
    this.#service = service;
  }

  /** Stores the bundle that names the scripted model, once for a service. */
  static async open(service: BenchService, modelUrl: string): Promise<BenchSessions> {
    const { secrets } = service.client;
    const bundles = await secrets.list();
    if (!bundles.some(({ name }) => name === BUNDLE)) {
      await secrets.create(BUNDLE, { LLM_API_KEY: 'sk-bench', LLM_BASE_URL: modelUrl });
    }
    return new BenchSessions(service);
  }

  create(): Promise<SessionAccess> {
    return this.#service.client.sessions.create(REQUEST);
  }

  resume(session: SessionAccess): Promise<SessionAccess> {
    const { chat_session_id } = session;
    return this.#service.client.sessions.resume({ chat_session_id });
  }

  async delete(session: SessionAccess): Promise<void> {
    await this.#service.client.sessions.delete(session.chat_session_id);
  }

  /** Milliseconds from a call that starts a session to its `ready` frame. The session is ended afterwards. */
  async timeToReady(start: () => Promise<SessionAccess>): Promise<number> {
    const began = performance.now();
    const session = await start();
    const talk = await this.attach(session);
    const took = performance.now() - began;
    await talk.close();
    await this.delete(session);
    return took;
  }

  /** Attaches a client and reads up to `ready`. */
  async attach(session: SessionAccess): Promise<BenchTalk> {
    const talk = new BenchTalk(this.#service.client.sessions.connect(session));
    await talk.until('ready');
    return talk;
  }
}

/** A client of a session that reads frame by frame. */
export class BenchTalk {
  readonly #connection: SessionConnection;
  readonly #frames: AsyncIterator<SessionFrame>;

  constructor(connection: SessionConnection) {
    this.#connection = connection;
    this.#frames = connection[Symbol.asyncIterator]();
  }

  task(prompt: string): void {
    this.#connection.task(prompt);
  }

  /** Reads up to a frame of this type. */
  async until(type: ServerFrame['type']): Promise<void> {
    for (;;) {
      const { value, done } = await this.#frames.next();
      if (done === true) throw new Error(`the connection ended before ${type}`);
      if (value.type === type) return;
    }
  }

  /** Asks the source of frames for a round of `count`, and measures how fast it comes. */
  async framesPerSecond(count: number): Promise<number> {
    this.#connection.interrupt();
    await this.until('text_delta');
    const first = performance.now();
    for (let seen = 1; seen < count; seen += 1) await this.until('text_delta');
    return ((count - 1) * 1000) / (performance.now() - first);
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }
}
