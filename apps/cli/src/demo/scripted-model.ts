import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Agent, LlmVendor } from '@svc/contract';
import type { ModelServer } from '@svc/model-server';
import { demoScript } from './script.ts';

const HOST = '127.0.0.1';
const DAYS = 1;

/** A model that says what is written down for it, and how a service reaches it. */
export interface ScriptedModel {
  readonly server: ModelServer;
  /** What a request for a session says of the model. */
  readonly llm: { readonly vendor: LlmVendor; readonly model: string; readonly base_url: string };
  /** Settings that let a service reach this one address, which is not public. */
  readonly settings: {
    readonly SVC_EGRESS_ALLOW_HOSTS: string;
    readonly SVC_EGRESS_CA_FILE: string;
  };
}

/** Starts the model on this machine's loopback, with a certificate of a CA of its own in `directory`. */
export async function startScriptedModel(agent: Agent, directory: string): Promise<ScriptedModel> {
  const [{ startModelServer }, { createCa, issueCertificate }] = await Promise.all([
    import('@svc/model-server'),
    import('@svc/service-kit/tls'),
  ]);
  const ca = await createCa('svc demo', DAYS);
  const tls = await issueCertificate(ca, { commonName: HOST, names: [HOST], days: DAYS });
  const caFile = join(directory, 'model-ca.pem');
  await writeFile(caFile, ca.cert, { mode: 0o600 });
  const server = await startModelServer({ script: demoScript(agent), tls, host: HOST });
  const { host } = new URL(server.url);
  const llm =
    agent === 'codex'
      ? ({ vendor: 'openai', model: 'gpt-scripted', base_url: `${server.url}/v1` } as const)
      : ({ vendor: 'anthropic', model: 'claude-scripted', base_url: server.url } as const);
  return {
    server,
    llm,
    settings: { SVC_EGRESS_ALLOW_HOSTS: host, SVC_EGRESS_CA_FILE: caFile },
  };
}

/** How many requests the model got that held `text`: what the agent remembers, it sends. */
export function requestsWith(server: ModelServer, text: string): number {
  return server.requests.filter(({ body }) => JSON.stringify(body ?? '').includes(text)).length;
}
