import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { databaseServer } from '@svc/service-driver';
import pg from 'pg';

/** Counts what a service writes: the write-ahead log of its database, and its objects. */
export class BytesWritten implements AsyncDisposable {
  readonly #objects: string;
  readonly #database: pg.Client;

  private constructor(objects: string, database: pg.Client) {
    this.#objects = objects;
    this.#database = database;
  }

  /** @param dataDir the data directory of a running service with its own database and objects */
  static async open(dataDir: string): Promise<BytesWritten> {
    const server = await databaseServer(dataDir);
    if (server === undefined) throw new Error(`no database runs in ${dataDir}`);
    const database = new pg.Client({ connectionString: server.url });
    await database.connect();
    return new BytesWritten(join(dataDir, 'objects'), database);
  }

  /** Bytes written so far, as long as no object is deleted. Only differences have a meaning. */
  async now(): Promise<{ readonly database: number; readonly objects: number }> {
    const { rows } = await this.#database.query(
      `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') as bytes`,
    );
    return { database: Number(rows[0]?.bytes), objects: await sizeOf(this.#objects) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#database.end();
  }
}

async function sizeOf(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = files.map(async (file) => (await stat(join(file.parentPath, file.name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
