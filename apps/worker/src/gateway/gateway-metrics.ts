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
      help: 'Requests of agents to their models, by the status they were answered with; 0 when they were broken off before.',
      labelNames: ['vendor', 'status'],
      registers,
    });
    this.#tokens = new Counter({
      name: 'svc_worker_llm_tokens_total',
      help: 'Tokens as the vendors count them; cached ones are input, too.',
      labelNames: ['vendor', 'kind'],
      registers,
    });
    this.#running = new Gauge({
      name: 'svc_worker_llm_requests_running',
      help: 'Requests of agents to their models that are under way.',
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
