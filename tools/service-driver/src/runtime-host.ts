import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SessionAccess } from '@svc/contract';
import { freePort } from '@svc/service-kit/testing';
import { callersEnvironment } from './environment.ts';
import type { ServiceAddress } from './private-service.ts';
import { runSvc, type SvcContext, SvcProcess } from './svc-process.ts';

/** A runtime host in a process of its own, in addition to the one inside the service. */
export class RuntimeHost implements AsyncDisposable {
  readonly port: number;
  readonly #directory: string;
  readonly #context: SvcContext;
  #process: SvcProcess | undefined;

  private constructor(port: number, directory: string, env: NodeJS.ProcessEnv) {
    this.port = port;
    this.#directory = directory;
    this.#context = { env, launcher: [] };
  }

  /** Starts `svc runtime` for a service on a free port, and resolves when it accepts clients. */
  static async start({ baseUrl, caFile, dataDir }: ServiceAddress): Promise<RuntimeHost> {
    const port = await freePort();
    const directory = await mkdtemp(join(tmpdir(), 'svc-runtime-host-'));
    const host = new RuntimeHost(port, directory, {
      ...callersEnvironment(),
      SVC_DATA_DIR: directory,
      SVC_CONTROL_PLANE_URL: baseUrl,
      SVC_CA_FILE: caFile,
      SVC_ENROLMENT_TOKEN: await enrolmentToken(dataDir),
      SVC_RUNTIME_LISTEN: `localhost:${port}`,
      // No load balancer has to notice that the host ends.
      SVC_DRAIN_NOTICE_SECONDS: '0',
      SVC_TLS_CERT_FILE: join(dataDir, 'tls/server.pem'),
      SVC_TLS_KEY_FILE: join(dataDir, 'tls/server-key.pem'),
    });
    try {
      await host.startAgain();
    } catch (error) {
      await host[Symbol.asyncDispose]();
      throw error;
    }
    return host;
  }

  get pid(): number {
    if (this.#process === undefined) throw new Error('the runtime host is not running');
    return this.#process.pid;
  }

  /** The URL at which a client attaches to a session through this host. */
  urlOf({ connect_url }: Pick<SessionAccess, 'connect_url'>): string {
    const url = new URL(connect_url);
    url.port = String(this.port);
    return url.href;
  }

  /** Ends the host as a crash would, with SIGKILL. */
  async kill(): Promise<void> {
    await this.#process?.end('SIGKILL');
  }

  /** Starts the host again on the same port after {@link kill}. */
  async startAgain(): Promise<void> {
    this.#process = await SvcProcess.spawn(this.#context, ['runtime'], {
      dataDir: this.#directory,
      outputFile: join(this.#directory, 'output.log'),
    });
    await this.#process.ready();
  }

  /** Ends the host in order, with SIGTERM, and removes its directory. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process?.end('SIGTERM');
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** A token that the operator of a service makes on its machine. */
async function enrolmentToken(dataDir: string): Promise<string> {
  const context = { env: { ...callersEnvironment(), SVC_DATA_DIR: dataDir }, launcher: [] };
  const { exitCode, output } = await runSvc(context, ['runtime', 'token']);
  if (exitCode !== 0) throw new Error(output);
  return output.trim();
}
