import { join } from 'node:path';
import { localTls, type ModelServer, startModelServer } from '@svc/model-server';

/** An address of this machine that the service under test may call. */
const HOST = '127.0.0.78';
/** Of the long answer: text that makes frames of about 200 bytes. */
const CHUNK = 'x'.repeat(120);

/** Prompts that the scripted model knows. */
export const PROMPTS = {
  short: 'Say hello.',
  long: 'Say very much.',
  slow: 'Say it slowly.',
} as const;
/** Chunks of the answers to {@link PROMPTS}. */
export const LONG_CHUNKS = 3_000;
export const SLOW_CHUNKS = 100;
const SLOW_MS = 10;

/** The scripted model that the rows on sessions use. */
export interface BenchModels {
  readonly server: ModelServer;
  /** PEM of the CA to trust for it. */
  readonly ca: string;
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
      rules: [
        { when: { user: PROMPTS.short }, reply: { text: ['Hello ', 'to ', 'you.'] } },
        {
          when: { user: PROMPTS.long },
          reply: { text: Array.from({ length: LONG_CHUNKS }, () => CHUNK) },
        },
        {
          when: { user: PROMPTS.slow },
          reply: {
            text: Array.from({ length: SLOW_CHUNKS }, () => CHUNK),
            chunk_delay_ms: SLOW_MS,
          },
        },
      ],
    },
  });
  return {
    server,
    ca: tls.ca,
    environment: { SVC_EGRESS_ALLOW_HOSTS: HOST, SVC_EGRESS_CA_FILE: tls.caFile },
  };
}
