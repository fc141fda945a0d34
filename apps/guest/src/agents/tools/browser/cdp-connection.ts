import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';

const COMMAND_MS = 60_000;
const RETRY_MS = 250;

const Version = z.object({ webSocketDebuggerUrl: z.url() });
const Message = z.object({
  id: z.number().optional(),
  method: z.string().optional(),
  params: z.record(z.string(), z.unknown()).optional(),
  sessionId: z.string().optional(),
  result: z.record(z.string(), z.unknown()).optional(),
  error: z.object({ message: z.string() }).optional(),
});

export interface CdpEvent {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** The session of a target; undefined for events of the browser. */
  readonly sessionId: string | undefined;
}

/** The browser ended while it was in use. */
export class BrowserGone extends Error {}

/** A connection to a browser by the DevTools protocol. https://chromedevtools.github.io/devtools-protocol/ */
export class CdpConnection {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (message: z.infer<typeof Message>) => void>();
  readonly #listeners = new Set<(event: CdpEvent) => void>();
  readonly #gone = new AbortController();
  #count = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => this.#receive(String(data)));
    socket.addEventListener('close', () => this.#gone.abort(new BrowserGone('the browser ended')));
  }

  /**
   * Connects to the browser at an HTTP address. Waits until there is one.
   * @throws the reason of `signal` when it aborts
   */
  static async open(address: string, signal: AbortSignal): Promise<CdpConnection> {
    for (;;) {
      const connection = await CdpConnection.#tryOpen(address, signal);
      if (connection !== undefined) return connection;
      await sleep(RETRY_MS, undefined, { signal });
    }
  }

  static async #tryOpen(address: string, signal: AbortSignal): Promise<CdpConnection | undefined> {
    let url: string;
    try {
      const answer = await fetch(`${address}/json/version`, { signal });
      url = Version.parse(await answer.json()).webSocketDebuggerUrl;
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
    const socket = new WebSocket(url);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const abort = () => resolve(false);
    socket.addEventListener('open', () => resolve(true), { once: true });
    socket.addEventListener('error', abort, { once: true });
    signal.addEventListener('abort', abort, { once: true });
    const connection = new CdpConnection(socket);
    const isOpen = await promise;
    signal.removeEventListener('abort', abort);
    if (isOpen && !signal.aborted) return connection;
    connection.close();
    signal.throwIfAborted();
    return undefined;
  }

  /** Aborted with a {@link BrowserGone} when the connection has ended. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Calls `listener` with every event until the returned function is called. */
  listen(listener: (event: CdpEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Sends a command, to the browser or to the target of a session, and returns its result.
   * @throws BrowserGone; an Error with the browser's message, or when there is no answer in a minute; the reason of `signal`
   */
  async send<S extends z.ZodType>(
    method: string,
    params: Readonly<Record<string, unknown>>,
    result: S,
    options: { readonly sessionId?: string | undefined; readonly signal: AbortSignal },
  ): Promise<z.infer<S>> {
    const { sessionId } = options;
    const ended = AbortSignal.any([
      options.signal,
      this.#gone.signal,
      AbortSignal.timeout(COMMAND_MS),
    ]);
    ended.throwIfAborted();
    this.#count += 1;
    const id = this.#count;
    const { promise, resolve, reject } = Promise.withResolvers<z.infer<typeof Message>>();
    const abort = () => reject(ended.reason);
    ended.addEventListener('abort', abort, { once: true });
    this.#waiting.set(id, resolve);
    try {
      this.#socket.send(JSON.stringify({ id, method, params, sessionId }));
      const answer = await promise;
      if (answer.error !== undefined) throw new Error(`${method}: ${answer.error.message}`);
      return result.parse(answer.result);
    } finally {
      ended.removeEventListener('abort', abort);
      this.#waiting.delete(id);
    }
  }

  close(): void {
    this.#socket.close();
  }

  #receive(text: string): void {
    const message = Message.parse(JSON.parse(text));
    if (message.id !== undefined) {
      this.#waiting.get(message.id)?.(message);
      return;
    }
    const { method, params = {}, sessionId } = message;
    if (method === undefined) return;
    for (const listener of this.#listeners) listener({ method, params, sessionId });
  }
}
