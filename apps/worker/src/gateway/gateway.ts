import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type LlmVendor, VENDOR_BASE_URLS } from '@svc/contract';
import type { Egress } from '@svc/egress';
import type { Registry } from 'prom-client';
import type { WorkerLogger } from '../logger.ts';
import type { LlmAccount, LlmAccounts } from './account.ts';
import { GatewayFailure, sendFailure } from './answer/failure.ts';
import { upstreamFailure } from './answer/upstream-failure.ts';
import { forward } from './forward.ts';
import { GatewayMetrics } from './gateway-metrics.ts';
import { GATEWAY_LIMITS, type GatewayLimits } from './limits.ts';
import { type Registration, Registrations } from './registrations.ts';
import { dialectOfPath, isKnock, type Target, targetOf } from './request/endpoints.ts';

const HEADERS_MS = 20_000;
/** For the whole of a request's body. */
const REQUEST_MS = 300_000;
const KEEP_ALIVE_MS = 75_000;

export interface LlmGatewayOptions {
  /** Stays the caller's. */
  readonly egress: Egress;
  readonly metrics: Registry;
  readonly logger: Pick<WorkerLogger, 'warn' | 'error'>;
  readonly limits?: Partial<GatewayLimits>;
  /** Instead of the vendors' own. */
  readonly vendorBaseUrls?: Readonly<Record<LlmVendor, string>>;
}

/**
 * The way of agents to their models. Each sandbox is known by its address and speaks its own account's dialect; the
 * gateway puts the key in, streams, and counts what the vendor counts.
 */
export class LlmGateway implements LlmAccounts {
  readonly #options: LlmGatewayOptions;
  readonly #limits: GatewayLimits;
  readonly #registrations: Registrations;
  readonly #metrics: GatewayMetrics;
  readonly #server: Server;

  constructor(options: LlmGatewayOptions) {
    this.#options = options;
    this.#limits = { ...GATEWAY_LIMITS, ...options.limits };
    this.#registrations = new Registrations(this.#limits);
    this.#metrics = new GatewayMetrics(options.metrics);
    this.#server = createServer(
      {
        headersTimeout: HEADERS_MS,
        requestTimeout: REQUEST_MS,
        keepAliveTimeout: KEEP_ALIVE_MS,
        noDelay: true,
      },
      (request, response) => void this.#handle(request, response),
    );
    this.#server.on('connection', (socket) => this.#admit(socket));
  }

  /** Starts to serve; the address of the machine that sandboxes reach. Rejects when it cannot. */
  async listen(address: {
    readonly host: string;
    readonly port: number;
  }): Promise<{ port: number }> {
    this.#server.listen(address);
    await once(this.#server, 'listening');
    return { port: (this.#server.address() as AddressInfo).port };
  }

  register(address: string, account: LlmAccount): () => void {
    return this.#registrations.add(address, account);
  }

  update(address: string, account: LlmAccount): boolean {
    const registration = this.#registrations.at(address);
    if (registration === undefined) return false;
    registration.account = account;
    return true;
  }

  /** Ends it with everything that is under way. */
  async close(): Promise<void> {
    this.#registrations.clear();
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  #admit(socket: Socket): void {
    const registration = this.#registrations.at(socket.remoteAddress);
    if (registration === undefined) socket.destroy();
    else registration.addSocket(socket);
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const registration = this.#registrations.at(request.socket.remoteAddress);
    if (registration === undefined) {
      request.socket.destroy();
      return;
    }
    if (isKnock(request.method, request.url ?? '/')) {
      response.writeHead(200).end();
      return;
    }
    const { account } = registration;
    this.#metrics.started();
    const isAdmitted = registration.startRequest();
    try {
      if (!isAdmitted) throw new GatewayFailure(429, 'Too many requests are under way; try again.');
      await this.#forward(request, response, registration, targetFor(account, request));
    } catch (error) {
      this.#answerFailure(response, account, error, request);
    } finally {
      if (isAdmitted) registration.endRequest();
      this.#metrics.ended(account.vendor, response.headersSent ? response.statusCode : 0);
      // What is left of the request's body is read off, or the next one could not be.
      request.resume();
    }
  }

  async #forward(
    request: IncomingMessage,
    response: ServerResponse,
    registration: Registration,
    target: Target,
  ): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('the sandbox closed the connection')));
    const { egress, vendorBaseUrls = VENDOR_BASE_URLS } = this.#options;
    const account = this.#counting(registration.account);
    await forward(
      { egress, vendorBaseUrls, limits: this.#limits, held: registration },
      {
        account,
        target,
        request,
        response,
        signal: AbortSignal.any([gone.signal, registration.ended]),
      },
    );
  }

  /** The account, with what it uses in the metrics too. A listener that fails takes no answer down with it. */
  #counting(account: LlmAccount): LlmAccount {
    return {
      ...account,
      onUsage: (usage) => {
        this.#metrics.used(account.vendor, usage);
        try {
          account.onUsage(usage);
        } catch (err) {
          this.#options.logger.error({ err, vm_id: account.vmId }, 'could not record LLM usage');
        }
      },
    };
  }

  #answerFailure(
    response: ServerResponse,
    { vmId, vendor }: LlmAccount,
    error: unknown,
    { url = '' }: IncomingMessage,
  ): void {
    const failure = upstreamFailure(error);
    if (failure.status >= 500 && !response.destroyed) {
      const { logger } = this.#options;
      logger.warn({ err: failure.cause, vm_id: vmId, vendor }, failure.message);
    }
    sendFailure(response, dialectOfPath(url), failure);
  }
}

/** Where the request goes; throws what it is refused with. */
function targetFor(account: LlmAccount, { method, url = '/' }: IncomingMessage): Target {
  const dialect = dialectOfPath(url);
  if (dialect !== account.dialect) {
    throw new GatewayFailure(403, `This sandbox has a model that speaks ${account.dialect} alone.`);
  }
  const target = targetOf(method, url);
  if (target === undefined)
    throw new GatewayFailure(404, 'The gateway does not pass this request on.');
  return target;
}
