import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import { z } from 'zod';

const START_MS = 120_000;

/** Chromium of this machine without a window, whose DevTools listen on the loopback address. */
export class RunningBrowser implements AsyncDisposable {
  readonly #directory: string;
  #port = 0;
  #process: ChildProcess | undefined;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  static async start(): Promise<RunningBrowser> {
    const browser = new RunningBrowser(await mkdtemp(join(tmpdir(), 'svc-browser-')));
    await browser.#start();
    return browser;
  }

  /** HTTP address of its DevTools. */
  get address(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Kills it and starts another at the same address, which may not listen yet. */
  async crash(): Promise<void> {
    await this.#kill();
    await this.#start();
  }

  /** Ends the processes that show its pages. */
  async crashPages(): Promise<void> {
    const targets = z.array(z.object({ type: z.string(), webSocketDebuggerUrl: z.string() }));
    const listed = targets.parse(await (await fetch(`${this.address}/json/list`)).json());
    for (const { type, webSocketDebuggerUrl } of listed) {
      if (type !== 'page') continue;
      const socket = new WebSocket(webSocketDebuggerUrl);
      await once(socket, 'open');
      socket.send(JSON.stringify({ id: 1, method: 'Page.crash' }));
      await once(socket, 'message');
      socket.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kill();
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 5 });
  }

  async #start(): Promise<void> {
    const active = join(this.#directory, 'DevToolsActivePort');
    await rm(active, { force: true });
    this.#process = spawn(
      'chromium',
      [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--no-startup-window', '--no-first-run'],
        ...[`--remote-debugging-port=${this.#port}`, `--user-data-dir=${this.#directory}`],
      ],
      { stdio: 'ignore' },
    );
    if (this.#port !== 0) return;
    const firstLine = async () => Number((await readFile(active, 'utf8')).split('\n')[0]);
    this.#port = await vi.waitFor(firstLine, START_MS);
  }

  async #kill(): Promise<void> {
    const process = this.#process;
    if (process === undefined || process.exitCode !== null || process.signalCode !== null) return;
    const exited = once(process, 'exit');
    process.kill('SIGKILL');
    await exited;
  }
}
