import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { orIfAbsent } from './or-if-absent.ts';

/** The embedded PostgreSQL server of a data directory. */
export interface DatabaseServer {
  readonly pid: number;
  readonly socketDirectory: string;
  /** Connection string of the service's database, over the server's Unix socket. */
  readonly url: string;
}

/** Reads the server's pid file; undefined when no server runs or the file is still incomplete. */
export async function databaseServer(dataDir: string): Promise<DatabaseServer | undefined> {
  const text = await orIfAbsent(readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8'), '');
  // https://www.postgresql.org/docs/current/storage-file-layout.html
  const [pid, , , port, socketDirectory] = text.split('\n');
  if (!socketDirectory) return undefined;
  const url = `postgres://svc@/postgres?host=${encodeURIComponent(socketDirectory)}&port=${port}`;
  return { pid: Number(pid), socketDirectory, url };
}
