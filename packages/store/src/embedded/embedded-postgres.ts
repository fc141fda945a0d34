import { mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { configureArchive } from './backup/archive.ts';
import { requireNoReplacement } from './backup/unfinished-restore.ts';
import { locateBinaries } from './binaries.ts';
import { ensureCluster } from './cluster.ts';
import { DiskReserve } from './disk-reserve.ts';
import {
  boundLog,
  findPostmaster,
  type PostmasterOptions,
  runsIn,
  spawnPostmaster,
  stopPostmaster,
} from './postmaster.ts';
import {
  makeSocketDirectory,
  removeSocketDirectory,
  socketDirectoryOf,
  socketUrl,
} from './socket-directory.ts';
import { serverAccount } from './system-user.ts';

const READY_TIMEOUT_MS = 60_000;
const WATCH_MS = 250;
const PROBE_MS = 50;
const BACKOFF_MS = { first: 100, max: 15_000 } as const;
/** About an hour of failed starts with the backoff above, so that an operator has time to notice a full disk. */
const MAX_FAILED_STARTS = 250;

export interface EmbeddedPostgresOptions {
  /** Data directory of the service. The cluster is in its subdirectory `postgres`. */
  readonly dataDirectory: string;
  /**
   * Where the server archives its write-ahead log, for backups, from its next start on; null: nowhere. Default: as before.
   */
  readonly backupDirectory?: string | null;
  /** Starts although a restore has not finished: for the restore, and to end what it left. */
  readonly duringRestore?: boolean;
  /** How long to wait for the server when it starts, in milliseconds. */
  readonly readyMs?: number;
  /** Settings of the server that differ from the usual ones. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Called when the server starts, is adopted, ends unexpectedly or fails to start. */
  readonly onEvent?: (event: EmbeddedPostgresEvent) => void;
}

export type EmbeddedPostgresEvent =
  | { readonly kind: 'started' | 'adopted' | 'died'; readonly pid: number }
  | { readonly kind: 'reserve_taken' | 'reserve_released' }
  | { readonly kind: 'start_failed' | 'gave_up' | 'reserve_failed'; readonly error: unknown };

/**
 * A PostgreSQL server for one service, reachable only through a Unix socket.
 *
 * The server outlives a crash of the service, and the next start of the service adopts it. A server that ends
 * unexpectedly is restarted, until too many starts in a row have failed.
 */
export class EmbeddedPostgres {
  /** Connection string for `pg`. */
  readonly url: string;
  readonly #options: PostmasterOptions;
  readonly #reserve: DiskReserve;
  readonly #report: (event: EmbeddedPostgresEvent) => void;
  readonly #closing = new AbortController();
  #supervisor: Promise<void> = Promise.resolve();
  #reserveFailed = false;

  private constructor(
    options: PostmasterOptions,
    reserve: DiskReserve,
    report: (event: EmbeddedPostgresEvent) => void,
  ) {
    this.#options = options;
    this.#reserve = reserve;
    this.#report = report;
    this.url = socketUrl(options.socketDirectory);
  }

  /**
   * Creates the cluster unless it exists, adopts or starts its server, and settles when the server answers.
   * The caller must hold the lock of the data directory.
   * @throws UnfinishedRestoreError
   */
  static async start(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
    const account = await serverAccount();
    const binaries = await locateBinaries(process.getuid?.() === 0);
    await mkdir(options.dataDirectory, { recursive: true });
    const dataDirectory = await realpath(options.dataDirectory);
    const directory = join(dataDirectory, 'postgres');
    if (options.duringRestore !== true) await requireNoReplacement(directory);
    await ensureCluster(directory, binaries, account);
    if (options.backupDirectory !== undefined) {
      await configureArchive(directory, options.backupDirectory ?? undefined, account);
    }
    const socketDirectory = await makeSocketDirectory(dataDirectory, account);
    const logFile = join(dataDirectory, 'postgres.log');
    const { settings = {} } = options;
    const postmaster = { directory, socketDirectory, logFile, binaries, account, settings };
    const reserve = new DiskReserve(join(dataDirectory, 'postgres.reserve'));
    const server = new EmbeddedPostgres(postmaster, reserve, options.onEvent ?? (() => undefined));
    const pid = await server.#adoptOrSpawn(options.readyMs);
    server.#supervisor = server.#supervise(pid);
    return server;
  }

  /** Connection string of the server that is running on this data directory. Undefined when none is running. */
  static async runningUrl(dataDirectory: string): Promise<string | undefined> {
    const real = await realpath(dataDirectory).catch(() => undefined);
    if (real === undefined) return undefined;
    const pid = await findPostmaster(join(real, 'postgres'));
    return pid === undefined ? undefined : socketUrl(socketDirectoryOf(real));
  }

  /** Shuts the server down cleanly: disconnects clients and writes a checkpoint. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#supervisor;
    await stopPostmaster(this.#options.directory);
    await this.#reserve.release();
    await removeSocketDirectory(this.#options.socketDirectory);
  }

  async #adoptOrSpawn(readyMs = READY_TIMEOUT_MS): Promise<number> {
    const running = await findPostmaster(this.#options.directory);
    const pid = running ?? (await spawnPostmaster(this.#options));
    await this.#ready(pid, readyMs);
    this.#report({ kind: running === undefined ? 'started' : 'adopted', pid });
    return pid;
  }

  async #ready(pid: number, readyMs: number): Promise<void> {
    const deadline = Date.now() + readyMs;
    while (!(await answers(this.url))) {
      if (!(await runsIn(pid, this.#options.directory))) {
        throw new Error(`PostgreSQL ended while starting; see ${this.#options.logFile}.`);
      }
      if (Date.now() > deadline || this.#closing.signal.aborted) {
        throw new Error(`PostgreSQL did not become ready in time; see ${this.#options.logFile}.`);
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

  /** Settles with true when the server has ended unexpectedly, and with false when this is closing. */
  async #waitWhileAlive(pid: number): Promise<boolean> {
    while (await runsIn(pid, this.#options.directory)) {
      await this.#adjustReserve();
      // The next look tries again.
      await boundLog(this.#options.logFile).catch(() => undefined);
      if (!(await this.#pause(WATCH_MS))) return false;
    }
    return !this.#closing.signal.aborted;
  }

  /** Neither a failure to take the reserve nor one to give it back is a reason to stop watching the server. */
  async #adjustReserve(): Promise<void> {
    try {
      const change = await this.#reserve.adjust();
      if (change !== undefined) this.#report({ kind: `reserve_${change}` });
      this.#reserveFailed = false;
    } catch (error) {
      if (!this.#reserveFailed) this.#report({ kind: 'reserve_failed', error });
      this.#reserveFailed = true;
    }
  }

  async #restart(): Promise<number | undefined> {
    for (let failures = 0; failures < MAX_FAILED_STARTS; failures += 1) {
      try {
        return await this.#adoptOrSpawn();
      } catch (error) {
        this.#report({ kind: 'start_failed', error });
        await this.#adjustReserve();
      }
      const backoff = Math.min(BACKOFF_MS.first * 2 ** failures, BACKOFF_MS.max);
      if (!(await this.#pause(backoff))) return undefined;
    }
    this.#report({
      kind: 'gave_up',
      error: new Error('PostgreSQL failed to start too many times.'),
    });
    return undefined;
  }

  /** Waits. False when closing has interrupted the wait. */
  async #pause(milliseconds: number): Promise<boolean> {
    return delay(milliseconds, true, { signal: this.#closing.signal, ref: false }).catch(
      () => false,
    );
  }
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  // A server that is starting may close the connection at any time.
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
