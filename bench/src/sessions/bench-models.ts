import { join } from 'node:path';
import { type LocalTls, localTls, type ModelServer, startModelServer } from '@svc/model-server';

/** An address of this machine that the service is allowed to call. */
const HOST = '127.0.0.78';

/** A prompt in the model's script. */
export const PROMPT = 'Say hello.';

/** The model's answer to {@link PROMPT}. */
export const RULE = { when: { user: PROMPT }, reply: { text: ['Hello ', 'to ', 'you.'] } };

/** The scripted model of the rows that measure sessions. */
export interface BenchModels {
  readonly server: ModelServer;
  /** Its certificate, and the CA to trust for it. */
  readonly tls: LocalTls;
  readonly host: string;
  /** Settings that allow a service to call it. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Starts the model. The caller closes `server`. */
export async function startBenchModels(directory: string): Promise<BenchModels> {
  const tls = await localTls(join(directory, 'model-tls'), [HOST]);
  const server = await startModelServer({
    host: HOST,
    tls,
    script: { rules: [RULE] },
  });
  return {
    server,
    tls,
    host: HOST,
    environment: { SVC_EGRESS_ALLOW_HOSTS: HOST, SVC_EGRESS_CA_FILE: tls.caFile },
  };
}
