import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { LlmVendor } from '@svc/contract';
import type { Egress } from '@svc/egress';
import { boundPipelining } from '@svc/service-kit/http';
import type { Registry } from 'prom-client';
import type { WorkerLogger } from '../logger.ts';
import type { ByteRates } from '../rates/byte-rates.ts';
import type { LlmAccount, LlmAccounts } from './account.ts';
import { GatewayFailure, sendFailure } from './answer/failure.ts';
import { GatewayMetrics } from './gateway-metrics.ts';
import { gatewayRates } from './gateway-rates.ts';
import { GATEWAY_BYTES_PER_SECOND, GATEWAY_LIMITS, type GatewayLimits } from './limits.ts';
import { Registrations } from './registrations.ts';
import { dialectOfRoute, routeOfPath } from './request/endpoints.ts';
import { RequestHandler } from './request-handler.ts';

const HEADERS_MS = 20_000;
/** Time limit for a complete request body. */
const REQUEST_MS = 300_000;
const KEEP_ALIVE_MS = 75_000;

export interface LlmGatewayOptions {
  /** Owned and closed by the caller. */
  readonly egress: Egress;
  readonly metrics: Registry;
  readonly logger: Pick<WorkerLogger, 'warn' | 'error'>;
  readonly limits?: Partial<GatewayLimits>;
  /** Default: {@link GATEWAY_BYTES_PER_SECOND}. */
  readonly rates?: ByteRates;
  /** Default: the vendors' own. */
  readonly vendorBaseUrls?: Readonly<Record<LlmVendor, string>>;
}

/**
 * The proxy between agents and their models. It identifies a sandbox by its address, accepts only the dialect of its
 * account, adds the key, streams the response, and records the token counts that the vendor reports.
 */
export class LlmGateway implements LlmAccounts {
  readonly #registrations: Registrations;
  readonly #handler: RequestHandler;
  readonly #server: Server;

  constructor({
    egress,
    logger,
    vendorBaseUrls,
    metrics,
    limits,
    rates = gatewayRates(GATEWAY_BYTES_PER_SECOND),
  }: LlmGatewayOptions) {
    const allLimits = { ...GATEWAY_LIMITS, ...limits };
    this.#registrations = new Registrations(allLimits);
    this.#handler = new RequestHandler({
      egress,
      logger,
      vendorBaseUrls,
      limits: allLimits,
      rates,
      metrics: new GatewayMetrics(metrics),
    });
    this.#server = createServer(
      {
        headersTimeout: HEADERS_MS,
        requestTimeout: REQUEST_MS,
        keepAliveTimeout: KEEP_ALIVE_MS,
      },
      (request, response) => this.#handle(request, response),
    );
    boundPipelining(this.#server);
    this.#server.on('connection', (socket) => this.#admit(socket));
  }

  /** Listens on an address of the machine that sandboxes can reach. Rejects when it cannot be bound. */
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
    registration.replace(account);
    return true;
  }

  /** Stops the server and aborts all requests. */
  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#registrations.clear();
    await closed;
  }

  #admit(socket: Socket): void {
    const registration = this.#registrations.at(socket.remoteAddress);
    if (registration === undefined) socket.destroy();
    else registration.addSocket(socket);
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const registration = this.#registrations.at(request.socket.remoteAddress);
    if (registration === undefined) request.socket.destroy();
    else if (!registration.beginRequest()) refuse(request, response);
    else void this.#handler.handle(request, response, registration);
  }
}

/** Refuses a request beyond the rate, with as little work as possible, and closes the connection. */
function refuse({ url = '/' }: IncomingMessage, response: ServerResponse): void {
  response.setHeader('connection', 'close');
  const failure = new GatewayFailure(429, 'Too many requests; try again later.');
  sendFailure(response, dialectOfRoute(routeOfPath(url)), failure);
}
