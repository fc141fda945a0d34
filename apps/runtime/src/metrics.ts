import { createMetrics } from '@svc/service-kit';
import { Counter, Gauge } from 'prom-client';

/** The metrics of a runtime host. */
export class RuntimeMetrics {
  readonly registry = createMetrics();
  readonly connections = new Gauge({
    name: 'svc_runtime_connections',
    help: 'Open session connections.',
    registers: [this.registry],
  });
  readonly accepted = new Counter({
    name: 'svc_runtime_connections_total',
    help: 'Accepted session connections, by whether their worker was reachable.',
    labelNames: ['upstream'],
    registers: [this.registry],
  });
  readonly closed = new Counter({
    name: 'svc_runtime_connections_closed_total',
    help: 'Ended session connections, by close code.',
    labelNames: ['code'],
    registers: [this.registry],
  });
  readonly frames = new Counter({
    name: 'svc_runtime_frames_total',
    help: 'Forwarded frames, by direction.',
    labelNames: ['direction'],
    registers: [this.registry],
  });
}
