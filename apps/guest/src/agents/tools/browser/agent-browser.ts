import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { BrowserGone, CdpConnection, type CdpEvent } from './cdp-connection.ts';

/** How long a browser that has ended may take to run again, on an emulated processor. */
const START_MS = 120_000;
/** A page that has not loaded after this time can be used as far as it is. */
const LOAD_MS = 60_000;
/** An action that leads to another page begins to do so within this time. */
const SETTLE_MS = 400;
const MAX_DIALOG_CHARS = 500;

const Nothing = z.object({});
const CRASHED =
  'The browser had crashed and was started again. Its pages are gone: navigate to the page again.';
const PAGE_CRASHED = 'The page had crashed: navigate to it again.';

/** The page that the agent works with. */
interface Page {
  readonly targetId: string;
  readonly sessionId: string;
  /** Aborts when the page has crashed or was closed. Its commands would not be answered. */
  readonly lost: AbortController;
}

/**
 * The page of the sandbox's browser that an agent works with. It is opened by the first navigation, and exchanged for a page
 * that it opens.
 */
export class AgentBrowser {
  readonly #address: string;
  #connection: CdpConnection | undefined;
  #page: Page | undefined;
  #opened: string | undefined;
  #loads = 0;
  #navigations = 0;
  #notices: string[] = [];

  /** @param address HTTP address of the browser's DevTools */
  constructor(address: string) {
    this.#address = address;
  }

  /** Counts the documents of the page, so that references to elements of an earlier one can be refused. */
  get document(): number {
    return this.#navigations;
  }

  /** What happened to the browser and the page since the last call, for the model. */
  takeNotices(): string[] {
    const notices = this.#notices;
    this.#notices = [];
    return notices;
  }

  /** Opens the page if there is none. */
  async openPage(signal: AbortSignal): Promise<void> {
    if (this.#page !== undefined) return;
    const connection = await this.#connect(signal);
    const created = z.object({ targetId: z.string() });
    const { targetId } = await connection.send(
      'Target.createTarget',
      { url: 'about:blank' },
      created,
      { signal },
    );
    await this.#attach(connection, targetId, signal);
  }

  /**
   * Sends a command to the page and returns its result.
   * @throws BrowserGone, also when the page crashes; an Error when there is no page; see also {@link CdpConnection.send}
   */
  async send<S extends z.ZodType>(
    method: string,
    params: Readonly<Record<string, unknown>>,
    result: S,
    signal: AbortSignal,
  ): Promise<z.infer<S>> {
    const { connection, page } = this.#current();
    const { sessionId, lost } = page;
    return connection.send(method, params, result, {
      sessionId,
      signal: AbortSignal.any([signal, lost.signal]),
    });
  }

  /** Sends a command that has no result to the page. */
  async tell(
    method: string,
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<void> {
    await this.send(method, params, Nothing, signal);
  }

  /** Sends a command to the browser itself. */
  async tellBrowser(
    method: string,
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#current().connection.send(method, params, Nothing, { signal });
  }

  /** Calls `listener` with every event of the browser and its pages until the returned function is called. */
  listen(listener: (event: CdpEvent) => void): () => void {
    return this.#current().connection.listen(listener);
  }

  /** Calls `listener` when the browser ends, unless the returned function is called before. */
  onceGone(listener: () => void): () => void {
    const { gone } = this.#current().connection;
    gone.addEventListener('abort', listener, { once: true });
    return () => gone.removeEventListener('abort', listener);
  }

  /**
   * Runs an action and waits until the page that it leads to has loaded, if it leads to one. False when that page is still
   * loading after a minute.
   */
  async perform(
    action: () => Promise<void>,
    signal: AbortSignal,
    { leads = false } = {},
  ): Promise<boolean> {
    const { page } = this.#current();
    const loads = this.#loads;
    let begins = leads;
    const forget = this.listen(({ method, sessionId }) => {
      const mayLead = ['Page.frameRequestedNavigation', 'Page.frameStartedNavigating'];
      if (sessionId === page.sessionId && mayLead.includes(method)) begins = true;
    });
    try {
      await action();
      if (!begins) await this.#sleep(SETTLE_MS, signal);
      if (this.#opened !== undefined) return await this.#follow(this.#opened, signal);
      if (!begins) return true;
      return await this.#until(() => this.#loads > loads, signal);
    } finally {
      forget();
    }
  }

  close(): void {
    this.#connection?.close();
  }

  async #until(isDone: () => boolean, signal: AbortSignal): Promise<boolean> {
    const deadline = Date.now() + LOAD_MS;
    while (!isDone()) {
      if (Date.now() > deadline) return false;
      await this.#sleep(50, signal);
    }
    return true;
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const { connection, page } = this.#current();
    const ended = AbortSignal.any([signal, connection.gone, page.lost.signal]);
    try {
      await sleep(ms, undefined, { signal: ended });
    } catch (error) {
      ended.throwIfAborted();
      throw error;
    }
  }

  #current(): { readonly connection: CdpConnection; readonly page: Page } {
    const connection = this.#connection;
    const page = this.#page;
    if (connection !== undefined && page !== undefined) return { connection, page };
    const why = this.takeNotices();
    throw new Error(why.length > 0 ? why.join('\n') : 'No page is open: navigate to one first.');
  }

  async #connect(signal: AbortSignal): Promise<CdpConnection> {
    if (this.#connection !== undefined) return this.#connection;
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(START_MS)]);
    const connection = await CdpConnection.open(this.#address, deadline);
    connection.listen((event) => this.#note(event));
    connection.gone.addEventListener('abort', () => {
      if (this.#connection !== connection) return;
      this.#connection = undefined;
      if (this.#page !== undefined) this.#notices.push(CRASHED);
      this.#page = undefined;
    });
    this.#connection = connection;
    await connection.send('Target.setDiscoverTargets', { discover: true }, Nothing, { signal });
    return connection;
  }

  async #attach(connection: CdpConnection, targetId: string, signal: AbortSignal): Promise<void> {
    const attached = z.object({ sessionId: z.string() });
    const { sessionId } = await connection.send(
      'Target.attachToTarget',
      { targetId, flatten: true },
      attached,
      { signal },
    );
    this.#page = { targetId, sessionId, lost: new AbortController() };
    this.#opened = undefined;
    this.#navigations += 1;
    for (const domain of ['Page', 'DOM']) {
      await this.tell(`${domain}.enable`, {}, signal);
    }
  }

  async #follow(targetId: string, signal: AbortSignal): Promise<boolean> {
    const { connection } = this.#current();
    await this.#attach(connection, targetId, signal);
    this.#notices.push('The page opened another one, with which you work now.');
    const State = z.object({ result: z.object({ value: z.string() }) });
    const deadline = Date.now() + LOAD_MS;
    for (;;) {
      const expression = 'document.readyState';
      const { result } = await this.send('Runtime.evaluate', { expression }, State, signal);
      if (result.value === 'complete') return true;
      if (Date.now() > deadline) return false;
      await this.#sleep(50, signal);
    }
  }

  #note({ method, params, sessionId }: CdpEvent): void {
    if (method === 'Target.targetCreated') {
      const Info = z.object({ type: z.string(), targetId: z.string(), openerId: z.string() });
      const { data } = z.object({ targetInfo: Info }).safeParse(params);
      if (data?.targetInfo.type === 'page' && data.targetInfo.openerId === this.#page?.targetId) {
        this.#opened = data.targetInfo.targetId;
      }
      return;
    }
    if (method === 'Target.targetCrashed' && params.targetId === this.#page?.targetId) {
      this.#lose(PAGE_CRASHED);
      return;
    }
    if (sessionId === undefined || sessionId !== this.#page?.sessionId) {
      if (method === 'Target.detachedFromTarget' && params.sessionId === this.#page?.sessionId) {
        this.#lose('The page was closed.');
      }
      return;
    }
    if (method === 'Page.loadEventFired') this.#loads += 1;
    if (method === 'Page.frameNavigated') this.#countDocument(params);
    if (method === 'Page.javascriptDialogOpening') this.#dismissDialog(params);
  }

  #lose(notice: string): void {
    this.#page?.lost.abort(new BrowserGone('the page ended'));
    this.#page = undefined;
    this.#notices.push(notice);
  }

  #countDocument(params: CdpEvent['params']): void {
    const Frame = z.object({ frame: z.object({ parentId: z.string().optional() }) });
    if (Frame.parse(params).frame.parentId === undefined) this.#navigations += 1;
  }

  #dismissDialog(params: CdpEvent['params']): void {
    const message = String(params.message).slice(0, MAX_DIALOG_CHARS);
    this.#notices.push(`The page showed a dialog, which was dismissed: ${JSON.stringify(message)}`);
    const { signal } = new AbortController();
    this.tell('Page.handleJavaScriptDialog', { accept: false }, signal).catch((error: unknown) => {
      if (!(error instanceof BrowserGone)) this.#notices.push(`It cannot be dismissed: ${error}`);
    });
  }
}
