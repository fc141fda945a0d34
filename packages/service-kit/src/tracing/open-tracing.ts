import { Counter } from 'prom-client';
import { EXPORT_BOUNDS, type TracingOptions } from './options.ts';
import type { Tracing } from './tracing.ts';

/** Starts to record the spans of a component, if a collector is configured. OpenTelemetry is loaded only then. */
export async function openTracing(options: TracingOptions): Promise<Tracing | undefined> {
  const { endpoint, bounds } = options;
  // Served in any case, like every other metric.
  const spans = new Counter({
    name: 'svc_trace_spans_total',
    help: 'Spans that ended, and of these the ones that the collector accepted or that failed.',
    labelNames: ['outcome'],
    registers: [options.registry],
  });
  if (endpoint === undefined) return undefined;
  const { OtlpTracing } = await import('./otlp-tracing.ts');
  return new OtlpTracing({ ...options, endpoint, spans, bounds: { ...EXPORT_BOUNDS, ...bounds } });
}
