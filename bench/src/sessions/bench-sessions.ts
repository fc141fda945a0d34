import type { CreateSessionRequest, ServerFrame, SessionAccess } from '@svc/contract';
import type { SessionConnection, SessionFrame, SvcClient } from '@svc/sdk';

const BUNDLE = 'bench';

const REQUEST: CreateSessionRequest = {
  agent: { kind: 'deictic' },
  app: { id: 'bench' },
  template: 'standard',
  llm: { vendor: 'anthropic', model: 'claude-sonnet-4-5' },
  secrets: [BUNDLE],
  user_id: 'bench',
};

/** Sessions of the bench's account that use the scripted model. */
export class BenchSessions {
  readonly #client: SvcClient;

  private constructor(client: SvcClient) {
    this.#client = client;
  }

  /** Creates the secret bundle for the scripted model unless the service already has it. */
  static async open(
    { client }: { readonly client: SvcClient },
    modelUrl: string,
  ): Promise<BenchSessions> {
    const { secrets } = client;
    const bundles = await secrets.list();
    if (!bundles.some(({ name }) => name === BUNDLE)) {
      await secrets.create(BUNDLE, { LLM_API_KEY: 'sk-bench', LLM_BASE_URL: modelUrl });
    }
    return new BenchSessions(client);
  }

  create(): Promise<SessionAccess> {
    return this.#client.sessions.create(REQUEST);
  }

  resume(session: SessionAccess): Promise<SessionAccess> {
    const { chat_session_id } = session;
    return this.#client.sessions.resume({ chat_session_id });
  }

  async delete(session: SessionAccess): Promise<void> {
    await this.#client.sessions.delete(session.chat_session_id);
  }

  /** Milliseconds from a request that starts a session to its `ready` frame. Deletes the session afterwards. */
  async timeToReady(start: () => Promise<SessionAccess>): Promise<number> {
    const began = performance.now();
    const session = await start();
    const client = await this.attach(session);
    const took = performance.now() - began;
    await client.close();
    await this.delete(session);
    return took;
  }

  /** Attaches a client and reads frames up to `ready`. */
  async attach(session: SessionAccess): Promise<BenchSessionClient> {
    const client = new BenchSessionClient(this.#client.sessions.connect(session));
    await client.until('ready');
    return client;
  }
}

/** A client of a session that reads frames one by one. */
export class BenchSessionClient {
  readonly #connection: SessionConnection;
  readonly #frames: AsyncIterator<SessionFrame>;

  constructor(connection: SessionConnection) {
    this.#connection = connection;
    this.#frames = connection[Symbol.asyncIterator]();
  }

  task(prompt: string): void {
    this.#connection.task(prompt);
  }

  /** Reads frames up to the first of a type. */
  async until(type: ServerFrame['type']): Promise<void> {
    for (;;) {
      const { value, done } = await this.#frames.next();
      if (done === true) throw new Error(`the connection ended before ${type}`);
      if (value.type === type) return;
    }
  }

  /** Requests `count` frames from the frame source and returns their rate per second. */
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
