import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AGENT_VENDORS, type Agent, type LlmVendor } from '@svc/contract';
import type { ModelServer, RecordedRequest } from '@svc/model-server';
import { demoScript } from './script.ts';

const HOST = '127.0.0.1';
const CERTIFICATE_DAYS = 1;

/** A model server with prepared answers, and the configuration to use it. */
export interface ScriptedModel {
  readonly server: ModelServer;
  /** The model in a request for a session. */
  readonly llm: { readonly vendor: LlmVendor; readonly model: string; readonly base_url: string };
  /** Settings that allow a service to reach the address of the model, which is not public. */
  readonly settings: {
    readonly SVC_EGRESS_ALLOW_HOSTS: string;
    readonly SVC_EGRESS_CA_FILE: string;
  };
}

/** Starts the model on the loopback interface, with a certificate of a new CA, which it writes to `directory`. */
export async function startScriptedModel(agent: Agent, directory: string): Promise<ScriptedModel> {
  const [{ startModelServer }, { createCa, issueCertificate }] = await Promise.all([
    import('@svc/model-server'),
    import('@svc/service-kit/tls'),
  ]);
  const ca = await createCa('svc demo', CERTIFICATE_DAYS);
  const tls = await issueCertificate(ca, {
    commonName: HOST,
    names: [HOST],
    days: CERTIFICATE_DAYS,
  });
  const caFile = join(directory, 'model-ca.pem');
  await writeFile(caFile, ca.cert, { mode: 0o600 });
  const server = await startModelServer({ script: demoScript(agent), tls, host: HOST });
  const { host } = new URL(server.url);
  const llm =
    AGENT_VENDORS[agent] === 'openai'
      ? ({ vendor: 'openai', model: 'gpt-scripted', base_url: `${server.url}/v1` } as const)
      : ({ vendor: 'anthropic', model: 'claude-scripted', base_url: server.url } as const);
  return {
    server,
    llm,
    settings: { SVC_EGRESS_ALLOW_HOSTS: host, SVC_EGRESS_CA_FILE: caFile },
  };
}

/** Whether one of the requests to the model contains `text`. An agent sends everything that it remembers. */
export function isIn(requests: readonly RecordedRequest[], text: string): boolean {
  return requests.some(({ body }) => JSON.stringify(body ?? '').includes(text));
}
