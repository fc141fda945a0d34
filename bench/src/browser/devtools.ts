import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { WebSocket } from 'ws';

const START_MS = 300_000;
const COMMAND_MS = 120_000;
const RETRY_MS = 50;

type Answer = { id?: number; method?: string; result?: object; error?: { message: string } };

/** A client of a browser's DevTools, outside of the sandbox. https://chromedevtools.github.io/devtools-protocol/ */
export class DevTools {
  readonly #socket: WebSocket;
  readonly #answers = new Map<number, (answer: Answer) => void>();
  readonly #events = new Map<string, () => void>();

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data) => {
      const answer: Answer = JSON.parse(String(data));
      if (answer.id !== undefined) this.#answers.get(answer.id)?.(answer);
      else if (answer.method !== undefined) this.#events.get(answer.method)?.();
    });
  }

  /** Connects by a link to the port of the browser. Waits until it listens. */
  static async connect(link: string, ca: string): Promise<DevTools> {
    const dispatcher = new Agent({ connect: { ca } });
    const deadline = AbortSignal.timeout(START_MS);
    try {
      for (;;) {
        const { statusCode, body } = await request(`${link}json/version`, {
          dispatcher,
          signal: deadline,
        });
        const text = await body.text();
        if (statusCode === 200) {
          const socket = new WebSocket(JSON.parse(text).webSocketDebuggerUrl, { ca });
          await once(socket, 'open', { signal: deadline });
          return new DevTools(socket);
        }
        await sleep(RETRY_MS, undefined, { signal: deadline });
      }
    } finally {
      await dispatcher.destroy();
    }
  }

  /** Opens a page, loads a URL in it, and takes a screenshot. */
  async show(url: string): Promise<void> {
    const { targetId } = await this.#send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.#send('Target.attachToTarget', { targetId, flatten: true });
    await this.#send('Page.enable', {}, sessionId);
    const loaded = new Promise<void>((resolve) => {
      this.#events.set('Page.loadEventFired', resolve);
    });
    await this.#send('Page.navigate', { url }, sessionId);
    await loaded;
    const { data = '' } = await this.#send('Page.captureScreenshot', { format: 'png' }, sessionId);
    if (Buffer.from(data, 'base64').length < 1000) throw new Error('the screenshot is empty');
  }

  close(): void {
    this.#socket.terminate();
  }

  async #send(method: string, params: object, sessionId?: string): Promise<Record<string, string>> {
    const id = this.#answers.size + 1;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#answers.set(id, resolve);
    const late = setTimeout(() => reject(new Error(`no answer to ${method}`)), COMMAND_MS);
    try {
      this.#socket.send(JSON.stringify({ id, method, params, sessionId }));
      const { result, error } = await promise;
      if (error !== undefined) throw new Error(`${method}: ${error.message}`);
      return (result ?? {}) as Record<string, string>;
    } finally {
      clearTimeout(late);
    }
  }
}
