import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BUILT_IMAGES } from '@svc/service-kit/testing';
import { EmbeddedPostgres } from '@svc/store';
import { Balancer } from './balancer.ts';
import { commandLine, type Outcome, startSvc } from './run-svc.ts';

/** The first start on a machine builds the image. */
export const START_MS = 1_200_000;
const CLUSTER = { SVC_CLUSTER_SECRET: 'of the test, and long enough for one' };
const MASTER_KEY = '0b'.repeat(32);

/** A process of the fleet that is ready. */
export interface Component {
  /** The URL that it serves. */
  readonly url: string;
  /** Sends a signal and resolves with the exit code, or with the signal if that ended the process. */
  stop(signal: NodeJS.Signals): Promise<unknown>;
  /** Resolves as `stop` does when the process exits for another reason. */
  readonly exited: Promise<unknown>;
}

/** The components of a fleet, each in a process of its own, behind a balancer and on one PostgreSQL server. */
export class TestFleet implements AsyncDisposable {
  readonly balancer: Balancer;
  readonly #directory: string;
  readonly #databaseUrl: string;
  readonly #cleanUp: AsyncDisposableStack;
  #workerToken: string | undefined;

  private constructor(
    directory: string,
    databaseUrl: string,
    balancer: Balancer,
    cleanUp: AsyncDisposableStack,
  ) {
    this.#directory = directory;
    this.#databaseUrl = databaseUrl;
    this.balancer = balancer;
    this.#cleanUp = cleanUp;
  }

  static async start(): Promise<TestFleet> {
    const cleanUp = new AsyncDisposableStack();
    const directory = await mkdtemp(join(tmpdir(), 'svc-fleet-'));
    cleanUp.defer(() => rm(directory, { recursive: true, force: true }));
    const postgres = await EmbeddedPostgres.start({ dataDirectory: join(directory, 'database') });
    cleanUp.defer(() => postgres.close());
    // Settings require a host in the URL; the socket directory in the query takes precedence over it.
    const databaseUrl = postgres.url.replace('@/', '@localhost/');
    return new TestFleet(directory, databaseUrl, cleanUp.use(await Balancer.start()), cleanUp);
  }

  /** Runs a command as the operator of the control planes. */
  onControlPlane(args: readonly string[]): Promise<Outcome> {
    const settings = { ...CLUSTER, SVC_DATABASE_URL: this.#databaseUrl };
    return commandLine(this.#environment('operator', settings))(args);
  }

  /** Starts a control plane and adds it to the backends of the balancer. */
  async controlPlane(name: string): Promise<Component> {
    const component = await this.#start(name, 'control-plane', {
      ...CLUSTER,
      SVC_DATABASE_URL: this.#databaseUrl,
      SVC_MASTER_KEY: MASTER_KEY,
      SVC_LISTEN: '127.0.0.1:0',
      SVC_TLS: 'off',
    });
    const url = component.url.replace('localhost', '127.0.0.1');
    this.balancer.backends.push(url);
    return { ...component, url };
  }

  /** Starts the worker, or starts it again on its data directory. */
  async worker(settings: Readonly<Record<string, string>> = {}): Promise<Component> {
    this.#workerToken ??= await this.token('worker');
    const token = { SVC_ENROLMENT_TOKEN: this.#workerToken };
    return this.#start('worker', 'worker', { ...this.#workerSettings, ...token, ...settings });
  }

  /** Starts a runtime host, which is ready before anybody uses it. */
  runtime(name: string, settings: Readonly<Record<string, string>> = {}): Promise<Component> {
    return this.#start(name, 'runtime', {
      SVC_CONTROL_PLANE_URL: this.balancer.url,
      SVC_RUNTIME_LISTEN: '127.0.0.1:0',
      // No load balancer has to notice that it ends.
      SVC_DRAIN_NOTICE_SECONDS: '0',
      SVC_TLS: 'off',
      ...settings,
    });
  }

  /** An enrolment token of the operator. */
  async token(kind: 'worker' | 'runtime', args: readonly string[] = []): Promise<string> {
    const { code, output, errors } = await this.onControlPlane([kind, 'token', ...args]);
    if (code !== 0) throw new Error(errors);
    return output.trim();
  }

  /** Runs a command on the machine of the worker. */
  onWorker(args: readonly string[]): Promise<Outcome> {
    return commandLine(this.#environment('worker', this.#workerSettings))(args);
  }

  /** Signs an account up, and returns a function that runs commands as this customer. */
  async customer(): Promise<(args: readonly string[]) => Promise<Outcome>> {
    const svc = commandLine({ HOME: this.#directory, SVC_BASE_URL: this.balancer.url });
    await svc(['login', 'ada@example.com']);
    await svc(['login', 'ada@example.com', '--code', await this.#mailedCode()]);
    return svc;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cleanUp.disposeAsync();
  }

  get #workerSettings(): Readonly<Record<string, string>> {
    return {
      SVC_CONTROL_PLANE_URL: this.balancer.url,
      SVC_IMAGE_DIR: BUILT_IMAGES,
      SVC_POOL: 'standard=0',
    };
  }

  #environment(name: string, settings: Readonly<Record<string, string>>) {
    const HOME = this.#directory;
    return { HOME, SVC_DATA_DIR: join(HOME, name), ...settings };
  }

  /** Starts a component, and waits until it logs that it is ready. @throws Error with its output if it exits before */
  async #start(
    name: string,
    command: string,
    settings: Readonly<Record<string, string>>,
  ): Promise<Component> {
    const child = startSvc(this.#environment(name, settings), [command]);
    const exited = once(child, 'exit').then(([code, signal]) => code ?? signal);
    const stop = (signal: NodeJS.Signals): Promise<unknown> => {
      child.kill(signal);
      return exited;
    };
    // Ctrl-C ends the sandboxes of a worker too.
    this.#cleanUp.defer(async () => void (await stop('SIGINT')));
    let output = '';
    const ready = Promise.withResolvers<string>();
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
        const line = output.split('\n').find((text) => text.includes('is ready'));
        if (line !== undefined) ready.resolve(line);
      });
    }
    const failed = exited.then(() => Promise.reject(new Error(`${name} did not start: ${output}`)));
    const line = await Promise.race([ready.promise, failed]);
    return { url: String((JSON.parse(line) as { url?: string }).url), stop, exited };
  }

  async #mailedCode(): Promise<string> {
    const outboxes = (await readdir(this.#directory)).map((name) =>
      join(this.#directory, name, 'outbox'),
    );
    for (const outbox of outboxes) {
      const [name] = await readdir(outbox).catch(() => []);
      if (name === undefined) continue;
      const mail = await readFile(join(outbox, name), 'utf8');
      return /^Subject: (\d{6}) /m.exec(mail)?.[1] ?? '';
    }
    throw new Error('no mail');
  }
}
