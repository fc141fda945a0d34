/** `npm run dev:model`: runs a model server until Ctrl-C. */

import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { ensureLocalTls } from '@svc/service-kit/tls';
import { parseScript, type Script } from './script.ts';
import { startModelServer } from './server.ts';

const USAGE = `usage: npm run dev:model -- [--script FILE] [--host ADDRESS] [--port N] [--tls-dir DIRECTORY]

  --script   the answers (JSON; see tools/model-server/README.md); default: repeat the user's text
  --tls-dir  serve HTTPS with a CA and a certificate created in this directory; trust its ca.pem`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      script: { type: 'string' },
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '0' },
      'tls-dir': { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new Error('--port must be a port number');
  const script = values.script === undefined ? { rules: [] } : await readScript(values.script);
  const directory = values['tls-dir'];
  const tls =
    directory === undefined
      ? undefined
      : await ensureLocalTls({ directory, extraNames: [values.host] });
  const server = await startModelServer({
    script,
    host: values.host,
    port,
    ...(tls === undefined ? {} : { tls }),
  });
  console.log(server.url);
  if (tls !== undefined) console.log(`CA: ${tls.caFile}`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void server.close());
  }
}

async function readScript(file: string): Promise<Script> {
  return parseScript(JSON.parse(await readFile(file, 'utf8')));
}

main().catch((error: unknown) => {
  console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  process.exitCode = 1;
});
