import { createHash } from 'node:crypto';
import { chmod, mkdir, realpath, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { locateBinaries } from './binaries.ts';
import { CLUSTER_USER, ensureCluster, makeOwned } from './cluster.ts';
import {
  findPostmaster,
  type PostmasterOptions,
  runsIn,
  spawnPostmaster,
  stopPostmaster,
} from './postmaster.ts';
import { serverAccount } from './system-user.ts';

const READY_TIMEOUT_MS = 60_000;
const WATCH_MS = 250;
const PROBE_MS = 50;
const BACKOFF_MS = { first: 100, most: 15_000 } as const;
/** With the backoff above: about an hour of failed starts, such as a full disk takes to be noticed. */
const MOST_FAILED_STARTS = 250;

/** Where the embedded database lives, and who hears what happens to it. */
export interface EmbeddedPostgresOptions {
  /** Data directory of the service; the cluster goes to `postgres/` below it. */
  readonly dataDirectory: string;
  /** Told of every unexpected end of the server and of every restart. */
  readonly onEvent?: (event: EmbeddedPostgresEvent) => void;
}

export type EmbeddedPostgresEvent =
  | { readonly kind: 'started' | 'adopted' | 'died'; readonly pid: number }
  | { readonly kind: 'start_failed' | 'gave_up'; readonly error: unknown };

/**
 * A PostgreSQL server of the service's own, reached through a Unix socket only.
 *
 * It runs as a process of its own: it outlives a crash of the service, whose next start adopts it.
 * When it dies it is started again, until too many starts in a row have failed.
 */
export class EmbeddedPostgres {
  /** Connection string for `pg`. */
  readonly url: string;
  readonly #options: PostmasterOptions;
  readonly #report: (event: EmbeddedPostgresEvent) => void;
  readonly #closing = new AbortController();
  #supervisor: Promise<void> = Promise.resolve();

  private constructor(options: PostmasterOptions, report: (event: EmbeddedPostgresEvent) => void) {
    this.#options = options;
    this.#report = report;
    this.url = socketUrl(options.socketDirectory);
  }

  /**
   * Creates the cluster if there is none, adopts or starts its server, and settles when it answers.
   * The caller holds the lock of the data directory.
   */
  static async start(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
    const account = await serverAccount();
    const binaries = await locateBinaries(process.getuid?.() === 0);
    await mkdir(options.dataDirectory, { recursive: true });
    const dataDirectory = await realpath(options.dataDirectory);
    const directory = join(dataDirectory, 'postgres');
    await ensureCluster(directory, binaries, account);
    const socketDirectory = await makeSocketDirectory(dataDirectory, account);
    const logFile = join(dataDirectory, 'postgres.log');
    const postmaster = { directory, socketDirectory, logFile, binaries, account };
    const server = new EmbeddedPostgres(postmaster, options.onEvent ?? (() => undefined));
    const pid = await server.#adoptOrSpawn();
    server.#supervisor = server.#supervise(pid);
    return server;
  }

  /** Connection string of the server that runs on this data directory, whoever started it; undefined when none does. */
  static async runningUrl(dataDirectory: string): Promise<string | undefined> {
    const real = await realpath(dataDirectory).catch(() => undefined);
    if (real === undefined) return undefined;
    const pid = await findPostmaster(join(real, 'postgres'));
    return pid === undefined ? undefined : socketUrl(socketDirectoryOf(real).directory);
  }

  /** Stops the server in order: clients are disconnected, everything committed is on disk. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#supervisor;
    await stopPostmaster(this.#options.directory);
    await rm(this.#options.socketDirectory, { recursive: true, force: true });
    // Other parts of the instance may still keep files beside it.
    await rmdir(dirname(this.#options.socketDirectory)).catch(() => undefined);
  }

  async #adoptOrSpawn(): Promise<number> {
    const running = await findPostmaster(this.#options.directory);
    const pid = running ?? (await spawnPostmaster(this.#options));
    await this.#ready(pid);
    this.#report({ kind: running === undefined ? 'started' : 'adopted', pid });
    return pid;
  }

  async #ready(pid: number): Promise<void> {
    const deadline = Date.now() + READY_TIMEOUT_MS;
    while (!(await answers(this.url))) {
      if (!(await runsIn(pid, this.#options.directory))) {
        throw new Error(`PostgreSQL ended while starting; see ${this.#options.logFile}.`);
      }
      if (Date.now() > deadline || this.#closing.signal.aborted) {
        throw new Error(`PostgreSQL is not ready in time; see ${this.#options.logFile}.`);
      }
      await delay(PROBE_MS);
    }
  }

  async #supervise(first: number): Promise<void> {
    let pid = first;
    while (await this.#waitWhileAlive(pid)) {
      this.#report({ kind: 'died', pid });
      const next = await this.#restart();
      if (next === undefined) return;
      pid = next;
    }
  }

  /** Settles with true when the server ended by itself, with false when this is closing. */
  async #waitWhileAlive(pid: number): Promise<boolean> {
    while (await runsIn(pid, this.#options.directory)) {
      if (!(await this.#pause(WATCH_MS))) return false;
    }
    return !this.#closing.signal.aborted;
  }

  async #restart(): Promise<number | undefined> {
    for (let failures = 0; failures < MOST_FAILED_STARTS; failures += 1) {
      try {
        return await this.#adoptOrSpawn();
      } catch (error) {
        this.#report({ kind: 'start_failed', error });
      }
      const backoff = Math.min(BACKOFF_MS.first * 2 ** failures, BACKOFF_MS.most);
      if (!(await this.#pause(backoff))) return undefined;
    }
    this.#report({ kind: 'gave_up', error: new Error('PostgreSQL does not start any more.') });
    return undefined;
  }

  /** Waits; false when closing cut it short. */
  async #pause(milliseconds: number): Promise<boolean> {
    return delay(milliseconds, true, { signal: this.#closing.signal, ref: false }).catch(
      () => false,
    );
  }
}

/** Socket paths are limited to about 100 bytes, so the directory's name is a digest of the data directory's. */
function socketDirectoryOf(dataDirectory: string) {
  const root = process.getuid?.() === 0 ? '/run/svc' : userRuntimeDirectory();
  const digest = createHash('sha256').update(dataDirectory).digest('hex').slice(0, 12);
  const instance = join(root, digest);
  return { root, instance, directory: join(instance, 'postgres') };
}

async function makeSocketDirectory(
  dataDirectory: string,
  account: { uid: number; gid: number },
): Promise<string> {
  const { root, instance, directory } = socketDirectoryOf(dataDirectory);
  for (const parent of [root, instance]) {
    await mkdir(parent, { recursive: true });
    // The server's account must pass through; what lies inside keeps its own permissions.
    await chmod(parent, 0o711);
  }
  await makeOwned(directory, account);
  return directory;
}

/** Changing its mode below fails when it belongs to somebody else. */
function userRuntimeDirectory(): string {
  return join(process.env.XDG_RUNTIME_DIR ?? tmpdir(), `svc-${process.getuid?.()}`);
}

function socketUrl(directory: string): string {
  return `postgres://${CLUSTER_USER}@/postgres?host=${encodeURIComponent(directory)}`;
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  // A server that is still starting may close the connection at any moment.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
