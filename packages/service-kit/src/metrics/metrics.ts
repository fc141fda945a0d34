import { collectDefaultMetrics, Registry } from 'prom-client';

/** A separate registry with the metrics of this process. */
export function createMetrics(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}
