import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { createServer } from 'node:net';
import { until } from '@svc/service-driver';
import { inTurns, timed } from '../measure/in-turns.ts';
import { type Row, ratioResult } from '../measure/row.ts';
import type { BenchService } from '../service/bench-service.ts';
import { OpenSsh } from '../ssh/open-ssh.ts';

const BYTES = 4 * 1024 * 1024;
const PORT = 8000;
const PAGE = 'page';
const SWITCHED = '/tmp/switched';

/** A page of a web server in a sandbox, through its port, compared with `ssh -L` to the same server. */
export const portPage: Row = {
  name: 'port-page',
  pool: 2,
  async run({ service, scratch, runs, progress }) {
    const { id, host, port } = await service.createSandbox();
    await prepare(service, id);
    const ssh = await OpenSsh.open({ host, port, dataDir: service.dataDir, scratch });
    const agent = new Agent({ keepAlive: true, ca: service.ca });
    try {
      const local = await freePort();
      await ssh.forward(local, PORT);
      const ours = () => getThroughPort(service, id, agent);
      const theirs = () => read(httpRequest(`http://127.0.0.1:${local}/${PAGE}`));
      const samples = await inTurns({
        runs,
        ours: () => timed(ours),
        comparison: () => timed(theirs),
        onTurn: (done) => progress(`${done}/${runs}`),
      });
      const result = ratioResult({
        name: 'port-page',
        what: '4 MB page through a port',
        against: '`ssh -L` over an open connection, same VM',
        unit: 'ms',
        ...samples,
        atLeast: 1,
        inverse: true,
      });
      return [result];
    } finally {
      agent.destroy();
      await ssh.close();
      await service.client.sandboxes.delete(id);
    }
  },
};

/**
 * Starts the web server. Then replaces the sandbox's SSH server by one that forwards ports, as the comparison needs: the
 * sandbox's own does not.
 */
async function prepare(service: BenchService, id: string): Promise<void> {
  const { output, exit_code } = await service.client.sandboxes.exec(
    id,
    `mkdir /tmp/site && cd /tmp/site && head -c ${BYTES} /dev/urandom >${PAGE}
    python3 -m http.server --bind 127.0.0.1 ${PORT} >/dev/null 2>&1 </dev/null &
    ${answers(PORT)}
    (sleep 1; sed -i 's/ -j / /' /etc/inittab; kill -HUP 1; pkill -o -x dropbear; ${answers(22)}; touch ${SWITCHED}) >/dev/null 2>&1 </dev/null &`,
  );
  if (exit_code !== 0) throw new Error(`the sandbox cannot be prepared: ${output}`);
  // The exchange ends the connection that carries commands. Files have another.
  await until('the SSH server is exchanged', () =>
    service.client.sandboxes.files.read(id, SWITCHED).then(
      () => true,
      () => false,
    ),
  );
}

/** A command that ends when a server in the sandbox accepts connections. */
function answers(port: number): string {
  const connect = `import socket; socket.create_connection(('127.0.0.1', ${port}))`;
  return `until python3 -c "${connect}" 2>/dev/null; do sleep 0.2; done`;
}

async function getThroughPort(service: BenchService, id: string, agent: Agent): Promise<void> {
  const url = `${service.baseUrl}/v1/sandboxes/${id}/ports/${PORT}/${PAGE}`;
  await read(httpsRequest(url, { agent, headers: { authorization: `Bearer ${service.apiKey}` } }));
}

/** Reads the page. @throws Error when it is not the whole page */
async function read(call: ReturnType<typeof httpRequest>): Promise<void> {
  call.end();
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  let bytes = 0;
  for await (const chunk of response) bytes += (chunk as Buffer).length;
  if (response.statusCode !== 200 || bytes !== BYTES) {
    throw new Error(`status ${response.statusCode} with ${bytes} bytes`);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (typeof address !== 'object' || address === null) throw new Error('not listening');
  return address.port;
}
