import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent } from 'undici';
import { forkProgram } from '../bare/forked-server.ts';
import type { GatewayOptions } from '../bare/gateway.ts';
import { medianTransit, type UpstreamOptions } from '../bare/timed-stream.ts';
import { inTurns } from '../measure/in-turns.ts';
import { differenceResult, type Row } from '../measure/row.ts';

const UPSTREAM = fileURLToPath(new URL('../bare/timed-upstream.ts', import.meta.url));
const GATEWAY = fileURLToPath(new URL('../bare/gateway.ts', import.meta.url));
const AT_MOST_MS = 2;

/** Transit time of a stream's events through the LLM gateway, compared with a direct connection. All on the host. */
export const gatewayStream: Row = {
  name: 'gateway-stream',
  pool: 2,
  async run({ models, runs, progress }) {
    const { tls, host } = models;
    const certificateFile = join(tls.caFile, '../server.pem');
    const keyFile = join(tls.caFile, '../server-key.pem');
    const upstream = await forkProgram(UPSTREAM, {
      host,
      certificateFile,
      keyFile,
    } satisfies UpstreamOptions);
    const upstreamUrl = `https://${host}:${upstream.port}`;
    const gateway = await forkProgram(GATEWAY, {
      upstream: upstreamUrl,
      upstreamHost: host,
      caFile: tls.caFile,
    } satisfies GatewayOptions);
    const direct = new Agent({ connect: { ca: tls.ca } });
    const plain = new Agent();
    try {
      const samples = await inTurns({
        runs,
        ours: () => medianTransit(`http://127.0.0.1:${gateway.port}/anthropic`, plain),
        comparison: () => medianTransit(upstreamUrl, direct),
        onTurn: (done) => progress(`${done}/${runs}`),
      });
      return [
        differenceResult({
          name: this.name,
          what: 'event of a stream through the LLM gateway',
          against: 'directly from the model',
          unit: 'ms',
          ...samples,
          atMost: AT_MOST_MS,
        }),
      ];
    } finally {
      await Promise.all([direct.close(), plain.close()]);
      await gateway.close();
      await upstream.close();
    }
  },
};
