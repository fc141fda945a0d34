export { Counter, Gauge, Histogram, Registry } from 'prom-client';
export { registerCertificateMetrics } from './certificate-metrics.ts';
export { registerHttpMetrics } from './http-metrics.ts';
export { createMetrics } from './metrics.ts';
