import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Address of the embedded PostgreSQL of a data directory, from the file in which it says where it listens. */
export async function databaseUrl(dataDir: string): Promise<string> {
  const lines = (await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n');
  const [port, socketDirectory] = lines.slice(3, 5);
  if (port === undefined || socketDirectory === undefined) throw new Error('PostgreSQL is not up');
  return `postgres://svc@/postgres?host=${encodeURIComponent(socketDirectory)}&port=${port}`;
}
