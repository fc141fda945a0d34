// The comparison for reads of a sandbox: a Fastify route with one SELECT by primary key, over HTTPS.
import { readFile } from 'node:fs/promises';
import Fastify from 'fastify';
import pg from 'pg';
import type { ForkedServerOptions } from './forked-server.ts';

/** The connection limit of the service itself. */
const CONNECTIONS = 16;

const options = JSON.parse(process.argv[2] ?? '') as ForkedServerOptions;
const pool = new pg.Pool({ connectionString: options.databaseUrl, max: CONNECTIONS });
const app = Fastify({
  https: { cert: await readFile(options.certificateFile), key: await readFile(options.keyFile) },
});
app.get<{ Params: { id: string } }>('/sandboxes/:id', async (request) => {
  const { rows } = await pool.query('select * from sandboxes where vm_id = $1', [
    request.params.id,
  ]);
  return rows[0];
});
await app.listen({ host: 'localhost', port: 0 });
process.send?.((app.server.address() as { port: number }).port);
process.once('disconnect', () => process.exit());
