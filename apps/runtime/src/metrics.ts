import { createMetrics } from '@svc/service-kit';
import { Counter, Gauge } from 'prom-client';

/** The metrics of a runtime host. */
export class RuntimeMetrics {
  readonly registry = createMetrics();
  readonly connections = new Gauge({
    name: 'svc_runtime_connections',
    help: 'Session connections that are open.',
    registers: [this.registry],
  });
  readonly accepted = new Counter({
    name: 'svc_runtime_connections_total',
    help: 'Session connections accepted, by whether a worker was reached.',
    labelNames: ['upstream'],
    registers: [this.registry],
  });
  readonly closed = new Counter({
    name: 'svc_runtime_connections_closed_total',
    help: 'Session connections that ended, by the close code that either side meant.',
    labelNames: ['code'],
    registers: [this.registry],
  });
  readonly frames = new Counter({
    name: 'svc_runtime_frames_total',
    help: 'Frames forwarded.',
    labelNames: ['direction'],
    registers: [this.registry],
  });
}
