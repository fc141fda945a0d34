import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedPostgres } from './embedded/embedded-postgres.ts';

/** A real PostgreSQL server in a directory of its own, for the tests of one file. */
export interface TestPostgres extends AsyncDisposable {
  readonly server: EmbeddedPostgres;
  readonly url: string;
  readonly directory: string;
}

/** Starts one; disposing of it stops the server and removes its files. */
export async function startTestPostgres(): Promise<TestPostgres> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-store-'));
  const server = await EmbeddedPostgres.start({ dataDirectory: directory });
  return {
    server,
    url: server.url,
    directory,
    [Symbol.asyncDispose]: async () => {
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
