import { join } from 'node:path';
import { type LocalTls, localTls, type ModelServer, startModelServer } from '@svc/model-server';

/** An address of this machine that the service under test may call. */
const HOST = '127.0.0.78';

/** A prompt that the scripted model knows. */
export const PROMPT = 'Say hello.';

/** The scripted model that the rows on sessions use. */
export interface BenchModels {
  readonly server: ModelServer;
  /** Its certificate, and the CA to trust for it. */
  readonly tls: LocalTls;
  readonly host: string;
  /** Variables with which a service may call it. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Starts it; whoever starts it closes `server`. */
export async function startBenchModels(directory: string): Promise<BenchModels> {
  const tls = await localTls(join(directory, 'model-tls'), [HOST]);
  const server = await startModelServer({
    host: HOST,
    tls,
    script: {
      rules: [{ when: { user: PROMPT }, reply: { text: ['Hello ', 'to ', 'you.'] } }],
    },
  });
  return {
    server,
    tls,
    host: HOST,
    environment: { SVC_EGRESS_ALLOW_HOSTS: HOST, SVC_EGRESS_CA_FILE: tls.caFile },
  };
}
