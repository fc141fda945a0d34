import { collectDefaultMetrics, Registry } from 'prom-client';

/** A registry of its own, with the metrics of this process. */
export function createMetrics(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}
