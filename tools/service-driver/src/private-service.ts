import { copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { type EnvironmentOptions, serviceEnvironment } from './environment.ts';
import { orIfAbsent } from './or-if-absent.ts';
import { runSvc, type SvcContext, SvcProcess, type SvcResult } from './svc-process.ts';

/** The location of a running service, as plain data that can be passed between processes. */
export interface ServiceAddress {
  readonly baseUrl: string;
  readonly caFile: string;
  readonly dataDir: string;
}

export interface PrivateServiceOptions extends EnvironmentOptions {
  /** A data directory that outlives the service. Default: a temporary one that is removed with it. */
  readonly dataDir?: string;
  /** Program and arguments that run the command line, such as `nsenter` with a network namespace. */
  readonly launcher?: readonly string[];
  /** Directory that receives a copy of the service's log when the service is disposed of. */
  readonly keepLogIn?: string | undefined;
  /** Stops the service when it aborts, also while the service starts. */
  readonly signal?: AbortSignal;
}

/** The real service in a process of its own, with its own data directory and ports. */
export class PrivateService implements AsyncDisposable {
  readonly dataDir: string;
  readonly #options: PrivateServiceOptions;
  readonly #context: SvcContext;
  readonly #outputFile: string;
  #process: SvcProcess | undefined;
  #address: ServiceAddress | undefined;

  private constructor(dataDir: string, context: SvcContext, options: PrivateServiceOptions) {
    this.dataDir = dataDir;
    this.#options = options;
    this.#context = context;
    this.#outputFile = join(dataDir, 'output.log');
  }

  /** Starts a service and resolves when it is ready. A failed start leaves nothing behind. */
  static async start(options: PrivateServiceOptions = {}): Promise<PrivateService> {
    options.signal?.throwIfAborted();
    const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'svc-private-')));
    await mkdir(dataDir, { recursive: true });
    const env = await serviceEnvironment(dataDir, options);
    const service = new PrivateService(dataDir, { env, launcher: options.launcher ?? [] }, options);
    options.signal?.addEventListener('abort', () => service.#process?.terminate(), { once: true });
    try {
      await service.#start();
    } catch (error) {
      await service[Symbol.asyncDispose]();
      throw error;
    }
    return service;
  }

  get address(): ServiceAddress {
    if (this.#address === undefined) throw new Error('the service has not been ready yet');
    return this.#address;
  }

  /** Process id of the service. */
  get pid(): number {
    if (this.#process === undefined) throw new Error('the service is not running');
    return this.#process.pid;
  }

  /** Whether the service has ended, however it did. */
  get hasEnded(): boolean {
    return this.#process?.hasEnded ?? true;
  }

  /** Starts the service again on the same data directory and ports, with further variables if given. */
  async startAgain(env: Readonly<Record<string, string>> = {}): Promise<void> {
    if (!this.hasEnded) throw new Error('the service is still running');
    Object.assign(this.#context.env, env);
    await this.#start();
  }

  /** Ends the service in order, with SIGTERM, and resolves with its exit code. */
  async stop(): Promise<number | null> {
    return this.#process === undefined ? null : this.#process.end('SIGTERM');
  }

  /** Ends the service as a crash would, with SIGKILL. Its sandboxes survive. */
  async kill(): Promise<void> {
    await this.#process?.end('SIGKILL');
  }

  /** Runs a command of the command line with the service's environment. */
  async svc(...args: string[]): Promise<SvcResult> {
    return runSvc(this.#context, args);
  }

  /** The service's log. */
  async log(): Promise<string> {
    return readFile(this.#logFile, 'utf8');
  }

  /** Ends the service and removes everything it used, including a temporary data directory. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop().catch(() => this.kill());
    const { exitCode, output } = await this.svc('down');
    if (exitCode !== 0) console.error(`svc down ended with ${exitCode}:\n${output}`);
    const { keepLogIn, dataDir } = this.#options;
    if (keepLogIn !== undefined) {
      // A service that failed early has no log.
      const copy = join(keepLogIn, `${basename(this.dataDir)}.log`);
      await orIfAbsent(copyFile(this.#logFile, copy), undefined);
    }
    if (dataDir === undefined) await rm(this.dataDir, { recursive: true, force: true });
  }

  get #logFile(): string {
    return join(this.dataDir, 'service.log');
  }

  async #start(): Promise<void> {
    this.#process = await SvcProcess.spawn(this.#context, ['up'], {
      dataDir: this.dataDir,
      outputFile: this.#outputFile,
    });
    const { base_url: baseUrl, ca_file: caFile } = await this.#process.ready();
    if (baseUrl === undefined || caFile === undefined) throw new Error('the record has no address');
    this.#address = { baseUrl, caFile, dataDir: this.dataDir };
  }
}
