import {
  type ConnectOptions,
  type DesktopCallName,
  type DesktopCalls,
  type SessionConnection,
  type SessionFrame,
  SvcError,
} from '@svc/sdk';
import { sleep, untilAborted } from '@svc/service-kit/concurrency';
import type { WebSocket } from 'ws';
import { InputQueue } from './input-queue.ts';
import { PageServer } from './page-server.ts';
import { ShownPage } from './shown-page.ts';

/** Before a view that was refused for its rate is asked for again. */
const RATE_RETRY_MS = 2_000;
/** A page that is loaded again comes back sooner. */
const RELOAD_MS = 2_000;
const FULL_NOTICE = 'The desktop is too slow for so much input; some was dropped.';

export interface WatchOptions {
  readonly session: string;
  /** Whether the page passes on mouse and keyboard. */
  readonly control: boolean;
  readonly fps?: number | undefined;
  /** Port of the page on this machine; 0: any. */
  readonly port: number;
  /** Called with the link to the page: at first, and whenever a page has gone and not come back. */
  readonly onLink: (link: string, isFirst: boolean) => void;
  /** Ends the watching. */
  readonly signal: AbortSignal;
}

/**
 * Shows the desktop of a session in a page on this machine, until the session ends or the signal aborts. The session is
 * watched only while a page is open; a page that opens the link takes the place of the one before.
 * @throws SvcError when the connection fails for good or the view is refused; CliError for a port that cannot be bound
 */
export async function watchSession(
  connect: (options: ConnectOptions) => SessionConnection,
  options: WatchOptions,
): Promise<void> {
  const { port, onLink, signal } = options;
  await using connection = connect({ onStatus: (status) => watching.noteStatus(status) });
  const watching = new Watching(connection, options);
  const server = await PageServer.listen({
    port,
    onPage: (socket, token) => watching.open(socket, token, () => onLink(server.link, false)),
  });
  let reason = 'The session has ended.';
  try {
    onLink(server.link, true);
    await untilAborted(watching.over, signal);
  } catch (error) {
    reason = signal.aborted ? 'The command was ended.' : 'The session cannot be shown any more.';
    if (!signal.aborted) throw error;
  } finally {
    await watching.close(reason);
    await server.close();
  }
}

/** The connection to a session, and the page that shows it. */
class Watching {
  /** Settles when the session has ended, or with the error that ends the watching. */
  readonly over: Promise<void>;
  readonly #connection: SessionConnection;
  readonly #options: WatchOptions;
  readonly #input: InputQueue;
  readonly #failed = Promise.withResolvers<never>();
  #isConnected = false;
  #page: ShownPage | undefined;
  /** Settles when the pages so far are no longer shown. */
  #shown: Promise<void> = Promise.resolve();
  #gone: NodeJS.Timeout | undefined;

  constructor(connection: SessionConnection, options: WatchOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#input = new InputQueue({
      call: (name, input, more) => this.#use(name, input, more),
      onFull: () => this.#page?.send({ type: 'notice', text: FULL_NOTICE }),
    });
    this.over = Promise.race([this.#read(), this.#failed.promise]);
    this.over.catch(() => undefined);
  }

  noteStatus(status: 'connected' | 'disconnected'): void {
    this.#isConnected = status === 'connected';
    if (!this.#isConnected) this.#input.reset();
    this.#sendStatus();
  }

  /** Shows the session in this page, in place of the one before. */
  open(socket: WebSocket, token: string, onGone: () => void): void {
    const { session, control } = this.#options;
    clearTimeout(this.#gone);
    const before = this.#page;
    const page = new ShownPage(socket, (input) => {
      if (control && this.#isConnected && this.#page === page) this.#input.add(input);
    });
    this.#page = page;
    page.send({ type: 'hello', session, token, control });
    this.#sendStatus();
    // A connection has one view at a time.
    this.#shown = Promise.all([this.#shown, before?.close()]).then(() => this.#show(page));
    this.#shown.catch(this.#failed.reject);
    page.closed.addEventListener('abort', () => {
      if (this.#page !== page) return;
      this.#page = undefined;
      this.#input.release();
      this.#gone = setTimeout(onGone, RELOAD_MS);
    });
  }

  async close(reason: string): Promise<void> {
    clearTimeout(this.#gone);
    const page = this.#page;
    this.#page = undefined;
    page?.send({ type: 'ended', reason });
    await page?.close();
  }

  async #show(page: ShownPage): Promise<void> {
    const { fps } = this.#options;
    while (this.#page === page) {
      try {
        await page.show(this.#connection.watch(fps === undefined ? {} : { fps }));
        return;
      } catch (error) {
        const code = error instanceof SvcError ? error.code : undefined;
        if (code === 'connection_closed') return;
        if (code !== 'frame_rate') throw error;
        await sleep(RATE_RETRY_MS, page.closed);
      }
    }
  }

  /** Uses mouse or keyboard; returns whether the call was sent. The session may just have ended. */
  #use<N extends DesktopCallName>(
    name: N,
    input: DesktopCalls[N],
    more: { readonly id: string },
  ): boolean {
    try {
      this.#connection.callTool(name, input, more);
      return true;
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      this.#page?.send({ type: 'notice', text: error.detail });
      return false;
    }
  }

  async #read(): Promise<void> {
    for await (const frame of this.#connection) this.#handle(frame);
  }

  #handle(frame: SessionFrame): void {
    if (frame.type !== 'tool_result' && frame.type !== 'error') return;
    const problem = frame.type === 'error' ? frame.message : frame.is_error ? frame.content : '';
    const isOwn = this.#input.answered(frame.id);
    if (isOwn && problem !== '') this.#page?.send({ type: 'notice', text: problem });
  }

  #sendStatus(): void {
    const status = this.#isConnected ? 'connected' : 'reconnecting';
    this.#page?.send({ type: 'status', status });
  }
}
