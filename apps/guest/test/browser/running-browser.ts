import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@svc/service-kit/testing';
import { vi } from 'vitest';
import { z } from 'zod';

const START_MS = 120_000;

/** Chromium of this machine without a window, whose DevTools listen on the loopback address. */
export class RunningBrowser implements AsyncDisposable {
  readonly #directory: string;
  readonly #port: number;
  #process: ChildProcess | undefined;

  private constructor(directory: string, port: number) {
    this.#directory = directory;
    this.#port = port;
  }

  static async start(): Promise<RunningBrowser> {
    const directory = await mkdtemp(join(tmpdir(), 'svc-browser-'));
    const browser = new RunningBrowser(directory, await freePort('127.0.0.1'));
    browser.#start();
    await vi.waitFor(() => fetch(`${browser.address}/json/version`), START_MS);
    return browser;
  }

  /** HTTP address of its DevTools. */
  get address(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Kills it and starts another at the same address, which may not listen yet. */
  async crash(): Promise<void> {
    await this.#kill();
    this.#start();
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

  #start(): void {
    this.#process = spawn(
      'chromium',
      [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--no-startup-window', '--no-first-run'],
        ...[`--remote-debugging-port=${this.#port}`, `--user-data-dir=${this.#directory}`],
      ],
      { stdio: 'ignore' },
    );
  }

  async #kill(): Promise<void> {
    const process = this.#process;
    if (process === undefined || process.exitCode !== null || process.signalCode !== null) return;
    const exited = once(process, 'exit');
    process.kill('SIGKILL');
    await exited;
  }
}
