import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { dialectOf, type LlmVendor, PLACEHOLDER_LLM_KEY } from '@svc/contract';
import { createEgress, type Egress } from '@svc/egress';
import { type ModelServer, type Reply, startModelServer } from '@svc/model-server';
import { Secret } from '@svc/service-kit';
import { type CertificatePair, createCa, issueCertificate } from '@svc/service-kit/tls';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { Agent, type Dispatcher, request } from 'undici';
import type { LlmAccount, LlmUsage } from '../src/gateway/account.ts';
import { LlmGateway, type LlmGatewayOptions } from '../src/gateway/gateway.ts';

export const HOST = '127.0.0.1';
/** The customer's key, which no sandbox may see. */
export const KEY = 'sk-the-real-key-of-the-customer';
/** Usage in scripts, and as the gateway must report it. */
export const USAGE = { input_tokens: 100, output_tokens: 20, cached_input_tokens: 60 };
export const messages = [{ role: 'user', content: 'hello' }];

const NO_RULES = { rules: [] };

/** Sends a request that announces a body of this length, over a connection of its own, and so much of the body as is given. */
export function sendRaw(port: number, path: string, length: number, body = ''): Socket {
  const socket = connect({ host: HOST, port }).on('error', () => undefined);
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${PLACEHOLDER_LLM_KEY}\r\ncontent-length: ${length}\r\n\r\n${body}`,
  );
  return socket;
}

interface AskOptions {
  readonly method?: 'GET' | 'POST' | 'HEAD' | 'OPTIONS';
  /** Text and streams are sent unchanged, other values as JSON. The length of a stream is not announced. */
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
  /** The source address. */
  readonly from?: string;
}

/** A sandbox, simulated by this process, at a gateway of its own. */
export interface GatewayGuest {
  readonly gateway: LlmGateway;
  readonly port: number;
  readonly account: LlmAccount;
  readonly usages: LlmUsage[];
  readonly metrics: Registry;
  readonly unregister: () => void;
  ask(path: string, options?: AskOptions): Promise<Dispatcher.ResponseData>;
}

/** Gateways on the loopback interface, in front of a scripted model that serves HTTPS with a CA of its own. */
export class GatewayLab implements AsyncDisposable {
  readonly caFile: string;
  readonly model: ModelServer;
  /** Log lines of the gateways. */
  readonly logs: string[] = [];
  readonly #directory: string;
  readonly #tls: CertificatePair;
  readonly #egress: Egress;
  /** Closed by {@link reset}, the latest first. */
  readonly #open: (() => unknown)[] = [];

  private constructor(directory: string, caFile: string, tls: CertificatePair, model: ModelServer) {
    this.#directory = directory;
    this.caFile = caFile;
    this.#tls = tls;
    this.model = model;
    const { port } = new URL(model.url);
    this.#egress = createEgress({ allowHosts: [{ host: HOST, port: Number(port) }], caFile });
  }

  static async open(): Promise<GatewayLab> {
    const directory = await mkdtemp(join(tmpdir(), 'svc-gateway-'));
    const caFile = join(directory, 'ca.pem');
    const ca = await createCa('test CA', 1);
    await writeFile(caFile, ca.cert);
    const tls = await issueCertificate(ca, { commonName: 'model', names: [HOST], days: 1 });
    const model = await startModelServer({ script: NO_RULES, tls });
    return new GatewayLab(directory, caFile, tls, model);
  }

  /** Scripts the model's next replies, each used once. */
  script(...replies: Reply[]): void {
    this.model.setScript({ rules: replies.map((reply) => ({ times: 1, reply })) });
  }

  /** Starts a gateway with one sandbox. */
  async start(
    vendor: LlmVendor,
    account: Partial<LlmAccount> = {},
    options: Partial<LlmGatewayOptions> = {},
  ): Promise<GatewayGuest> {
    const metrics = new Registry();
    const logger = pino({}, { write: (line: string) => this.logs.push(line) });
    const { url } = this.model;
    const gateway = new LlmGateway({
      egress: this.#egress,
      metrics,
      logger,
      vendorBaseUrls: {
        anthropic: url,
        openai: `${url}/v1`,
        google: `${url}/v1beta`,
        deepseek: url,
      },
      ...options,
    });
    this.endLater(() => gateway.close());
    const { port } = await gateway.listen({ host: HOST, port: 0 });
    const usages: LlmUsage[] = [];
    const whole: LlmAccount = {
      vmId: 'vm_1',
      tenantId: 'usr_1',
      vendor,
      dialect: dialectOf(vendor, account.baseUrl !== undefined),
      apiKey: new Secret(KEY),
      onUsage: (usage) => usages.push(usage),
      ...account,
    };
    const unregister = gateway.register(HOST, whole);
    return { gateway, port, account: whole, usages, metrics, unregister, ask: this.#asking(port) };
  }

  /** Starts a gateway with one sandbox, whose endpoint is a server with this listener. */
  async startAt(listener: RequestListener): Promise<GatewayGuest> {
    const server = createServer(this.#tls, listener).listen(0, HOST);
    await once(server, 'listening');
    this.endLater(() => server.close().closeAllConnections());
    const { port } = server.address() as AddressInfo;
    const egress = createEgress({ allowHosts: [{ host: HOST, port }], caFile: this.caFile });
    this.endLater(() => egress.close());
    return this.start('anthropic', { baseUrl: `https://${HOST}:${port}` }, { egress });
  }

  endLater(end: () => unknown): void {
    this.#open.push(end);
  }

  /** To be called after each test. */
  async reset(): Promise<void> {
    for (const end of this.#open.splice(0).reverse()) await end();
    this.model.setScript(NO_RULES);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.reset();
    await this.#egress.close();
    await this.model.close();
    await rm(this.#directory, { recursive: true, force: true });
  }

  #asking(port: number): GatewayGuest['ask'] {
    const agents = new Map<string, Agent>();
    this.endLater(() => Promise.all([...agents.values()].map((agent) => agent.destroy())));
    const agentFrom = (address: string) => {
      const agent = agents.get(address) ?? new Agent({ localAddress: address });
      agents.set(address, agent);
      return agent;
    };
    return (path, { method = 'POST', body, headers = {}, signal, from = HOST } = {}) =>
      request(`http://${HOST}:${port}${path}`, {
        method,
        headers: {
          'content-type': 'application/json',
          'x-api-key': PLACEHOLDER_LLM_KEY,
          ...headers,
        },
        body: bodyOf(body),
        dispatcher: agentFrom(from),
        ...(signal === undefined ? {} : { signal }),
      });
  }
}

function bodyOf(body: unknown): string | Readable | null {
  if (body === undefined) return null;
  return typeof body === 'string' || body instanceof Readable ? body : JSON.stringify(body);
}
