import type { LlmVendor } from '@svc/contract';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { LlmUsage } from './account.ts';

/** The gateway's metrics, by vendor; never by customer. */
export class GatewayMetrics {
  readonly #requests: Counter;
  readonly #tokens: Counter;
  readonly #running: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#requests = new Counter({
      name: 'svc_worker_llm_requests_total',
      help: 'Model requests of agents, by response status; 0 when aborted before a response.',
      labelNames: ['vendor', 'status'],
      registers,
    });
    this.#tokens = new Counter({
      name: 'svc_worker_llm_tokens_total',
      help: 'Tokens as counted by the vendors. Cached tokens also count as input.',
      labelNames: ['vendor', 'kind'],
      registers,
    });
    this.#running = new Gauge({
      name: 'svc_worker_llm_requests_running',
      help: 'Model requests of agents in progress.',
      registers,
    });
  }

  started(): void {
    this.#running.inc();
  }

  ended(vendor: LlmVendor, status: number): void {
    this.#running.dec();
    this.#requests.inc({ vendor, status });
  }

  used(vendor: LlmVendor, usage: LlmUsage): void {
    this.#tokens.inc({ vendor, kind: 'input' }, usage.input_tokens);
    this.#tokens.inc({ vendor, kind: 'output' }, usage.output_tokens);
    this.#tokens.inc({ vendor, kind: 'cached_input' }, usage.cached_input_tokens ?? 0);
  }
}
