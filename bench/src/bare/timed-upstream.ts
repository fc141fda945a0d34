// An HTTPS server that answers every request with a slow stream of server-sent events, each with the time of sending.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { UpstreamOptions } from './timed-stream.ts';

const EVENTS = 100;
const INTERVAL_MS = 10;

const { host, certificateFile, keyFile } = JSON.parse(process.argv[2] ?? '') as UpstreamOptions;
const [cert, key] = await Promise.all([readFile(certificateFile), readFile(keyFile)]);
const server = createServer({ cert, key }, async (request, response) => {
  request.resume();
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let event = 0; event < EVENTS && !response.destroyed; event += 1) {
    const sent = performance.timeOrigin + performance.now();
    response.write(`event: ping\ndata: {"type":"ping","sent":${sent}}\n\n`);
    await sleep(INTERVAL_MS);
  }
  response.end();
});
server.listen(0, host, () => process.send?.((server.address() as { port: number }).port));
process.once('disconnect', () => process.exit());
