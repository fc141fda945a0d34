export { Counter, Gauge, Histogram, Registry } from 'prom-client';
export { registerHttpMetrics } from './http-metrics.ts';
export { createMetrics } from './metrics.ts';
