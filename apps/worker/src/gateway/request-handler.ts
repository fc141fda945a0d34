import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type LlmDialect,
  type LlmVendor,
  PLACEHOLDER_LLM_KEY,
  VENDOR_BASE_URLS,
} from '@svc/contract';
import type { Egress } from '@svc/egress';
import type { WorkerLogger } from '../logger.ts';
import type { ByteRates } from '../rates/byte-rates.ts';
import type { LlmAccount } from './account.ts';
import { GatewayFailure, sendFailure } from './answer/failure.ts';
import { upstreamFailure } from './answer/upstream-failure.ts';
import { type Exchange, forward } from './forward.ts';
import type { GatewayMetrics } from './gateway-metrics.ts';
import type { GatewayLimits } from './limits.ts';
import type { Registration } from './registrations.ts';
import { dialectOfRoute, isConnectivityCheck, routeOfPath, targetOf } from './request/endpoints.ts';
import { hasPlaceholderKey } from './request/placeholder-key.ts';

export interface RequestHandlerOptions {
  readonly egress: Egress;
  readonly logger: Pick<WorkerLogger, 'warn' | 'error'>;
  readonly limits: GatewayLimits;
  readonly rates: Pick<ByteRates, 'ready' | 'spend'>;
  readonly metrics: GatewayMetrics;
  /** Default: the vendors' own. */
  readonly vendorBaseUrls?: Readonly<Record<LlmVendor, string>> | undefined;
}

/** Handles the requests of registered sandboxes: checks, forwards and counts them. */
export class RequestHandler {
  readonly #options: RequestHandlerOptions;

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
  }

  /** Answers one request. Never rejects. */
  async handle(
    request: IncomingMessage,
    response: ServerResponse,
    registration: Registration,
  ): Promise<void> {
    const { method, url = '/' } = request;
    if (isConnectivityCheck(method, url)) {
      response.writeHead(200).end();
      return;
    }
    const { metrics } = this.#options;
    const route = routeOfPath(url);
    const account = registration.accountFor(route);
    const { vendor, vmId, origin } = registration.account;
    // The vendor gets no trace of ours, and the agent's own is not taken: it could be anything.
    const scope = origin?.()?.begin({
      name: 'model request',
      kind: 'client',
      attributes: { 'svc.llm_vendor': vendor, 'svc.sandbox_id': vmId },
    });
    metrics.started();
    const isAdmitted = registration.startRequest();
    try {
      if (!isAdmitted) throw new GatewayFailure(429, 'Too many requests are under way; try again.');
      if (!hasPlaceholderKey(request.headers)) throw noKey();
      if (account === undefined) throw wrongDialect(registration.account);
      const target = targetOf(method, url);
      if (target === undefined) throw notAllowed();
      await this.#forward({ account, target, request, response }, registration);
    } catch (error) {
      scope?.fail(error);
      this.#answerFailure(response, registration, error, dialectOfRoute(route));
    } finally {
      if (isAdmitted) registration.endRequest();
      const status = response.headersSent ? response.statusCode : 0;
      metrics.ended(vendor, status);
      scope?.set({ 'http.response.status_code': status });
      scope?.end();
      // Drains the rest of the body; otherwise the connection could not carry another request.
      request.resume();
    }
  }

  async #forward(exchange: Omit<Exchange, 'signal'>, registration: Registration): Promise<void> {
    const gone = new AbortController();
    exchange.response.once('close', () =>
      gone.abort(new Error('the sandbox closed the connection')),
    );
    const { egress, limits, rates, vendorBaseUrls = VENDOR_BASE_URLS } = this.#options;
    await forward(
      { egress, vendorBaseUrls, limits, rates, held: registration },
      {
        ...exchange,
        account: this.#counting(exchange.account),
        signal: AbortSignal.any([gone.signal, registration.ended]),
      },
    );
  }

  /** The account, with its usage counted in the metrics too. A failing listener does not break the response. */
  #counting(account: LlmAccount): LlmAccount {
    return {
      ...account,
      onUsage: (usage) => {
        this.#options.metrics.used(account.vendor, usage);
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
    registration: Registration,
    error: unknown,
    dialect: LlmDialect | undefined,
  ): void {
    const failure = upstreamFailure(error);
    if (failure.status >= 500 && !response.destroyed) {
      const { vmId, vendor } = registration.account;
      registration.failures.note((omitted) => {
        const details = { err: failure.cause, vm_id: vmId, vendor, omitted };
        this.#options.logger.warn(details, failure.message);
      });
    }
    sendFailure(response, dialect, failure);
  }
}

function noKey(): GatewayFailure {
  return new GatewayFailure(401, `Send ${PLACEHOLDER_LLM_KEY} as the API key.`);
}

function wrongDialect({ dialect }: LlmAccount): GatewayFailure {
  return new GatewayFailure(403, `This sandbox has a model that speaks ${dialect} alone.`);
}

function notAllowed(): GatewayFailure {
  return new GatewayFailure(404, 'The gateway does not pass this request on.');
}
