import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { freePort } from '@svc/service-kit/testing';
import type { DesktopSettings } from '../../src/desktop/index.ts';

const PROGRAMS = resolve(import.meta.dirname, '../../../../images/cua/rootfs/usr/lib/svc/desktop');
const FORM = resolve(import.meta.dirname, 'form.py');
const START_DEADLINE_MS = 60_000;

/** What the form reported. */
export interface FormEvent {
  readonly event: string;
  readonly [property: string]: unknown;
}

/** The programs of a sandbox's desktop on a display of their own. The browser starts on request. */
export class RunningDesktop {
  readonly settings: DesktopSettings;
  /** What the form has reported. */
  readonly events: FormEvent[] = [];
  readonly #directory: string;
  readonly #processes: ChildProcess[] = [];
  readonly #env: NodeJS.ProcessEnv;
  #form: ChildProcess | undefined;
  #devtoolsPort = 0;

  private constructor(directory: string, display: string) {
    this.#directory = directory;
    const bus = `unix:path=${join(directory, 'bus')}`;
    this.#env = {
      ...process.env,
      DISPLAY: display,
      DBUS_SESSION_BUS_ADDRESS: bus,
      XDG_RUNTIME_DIR: directory,
      HOME: directory,
      NO_AT_BRIDGE: undefined,
    };
    this.settings = {
      display,
      server: '',
      starts: join(directory, 'starts'),
      width: 1280,
      height: 800,
    };
  }

  /** Starts everything and opens the form. Each call has a display of its own. */
  static async start(): Promise<RunningDesktop> {
    const directory = await mkdtemp(join(tmpdir(), 'svc-desktop-'));
    const screen = ['-screen', '0', '1280x800x24', '-fbdir', directory, '-nolisten', 'tcp'];
    const xvfb = spawn('Xvfb', ['-displayfd', '3', ...screen], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    });
    const number = await firstLine(xvfb, xvfb.stdio[3] as Readable);
    const desktop = new RunningDesktop(directory, `:${number}`);
    desktop.#processes.push(xvfb);
    try {
      await desktop.#startPrograms();
      return desktop;
    } catch (error) {
      await desktop.close();
      throw error;
    }
  }

  /** Records how often a program of the desktop was started. */
  async countStarts(program: string, starts: number): Promise<void> {
    await mkdir(this.settings.starts, { recursive: true });
    await writeFile(join(this.settings.starts, program), `${starts}\n`);
  }

  /** Opens a page in the desktop's browser, on top of the form. */
  openBrowser(page: string): void {
    const profile = join(this.#directory, 'profile');
    // Its own sandbox needs another user than root.
    const options = ['--no-sandbox', `--user-data-dir=${profile}`];
    const port = `--remote-debugging-port=${this.#devtoolsPort}`;
    this.#spawn(join(PROGRAMS, 'browser'), [...options, port, page]);
  }

  /** Stops the form, so that it answers no questions, or lets it go on. */
  signalForm(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#form?.kill(signal);
  }

  async close(): Promise<void> {
    for (const child of this.#processes.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    // A browser that was killed leaves processes that end a little later.
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 10 });
  }

  async #startPrograms(): Promise<void> {
    const { DBUS_SESSION_BUS_ADDRESS: bus } = this.#env;
    const session = ['--session', `--address=${bus}`, '--nofork', '--nopidfile'];
    const daemon = this.#spawn('dbus-daemon', [...session, '--print-address=1']);
    await firstLine(daemon, daemon.stdout);
    this.#spawn('openbox', []);
    this.#devtoolsPort = await freePort('127.0.0.1');
    const server = this.#spawn('/usr/bin/python3', [
      ...['-IB', join(PROGRAMS, 'server.py'), '--port', '0'],
      ...['--devtools-port', String(this.#devtoolsPort)],
      ...['--framebuffer', join(this.#directory, 'Xvfb_screen0')],
    ]);
    const listening = await firstLine(server, server.stdout);
    const port = /\d+/.exec(listening)?.[0] ?? '';
    Object.assign(this.settings, { server: `http://127.0.0.1:${port}` });
    await this.#openForm();
  }

  async #openForm(): Promise<void> {
    const form = this.#spawn('/usr/bin/python3', [FORM]);
    this.#form = form;
    let rest = '';
    form.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      this.events.push(...lines.map((line) => JSON.parse(line)));
    });
  }

  #spawn(command: string, args: string[]): ChildProcess & { readonly stdout: Readable } {
    const child = spawn(command, args, { env: this.#env, stdio: ['ignore', 'pipe', 'ignore'] });
    this.#processes.push(child);
    return child;
  }
}

async function firstLine(child: ChildProcess, output: Readable): Promise<string> {
  const signal = AbortSignal.timeout(START_DEADLINE_MS);
  const ended = once(child, 'exit', { signal }).then(([code]): never => {
    throw new Error(`${child.spawnfile} ended with ${code}`);
  });
  // It ends in the end, when no one waits for it any more.
  ended.catch(() => undefined);
  let text = '';
  const line = (async () => {
    for (;;) {
      const [chunk] = await once(output, 'data', { signal });
      text += chunk;
      if (text.includes('\n')) return text.trim();
    }
  })();
  return await Promise.race([line, ended]);
}
