import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import {
  type Attributes,
  type Context,
  SpanKind as OtelKind,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { AlwaysOnSampler, BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { isServiceError } from '@svc/contract';
import { settledWithin } from '../concurrency/index.ts';
import type { ExportBounds, TracingOptions } from './options.ts';
import { ReportedExporter, type ReportOptions } from './reported-exporter.ts';
import type {
  SpanAttributes,
  SpanKind,
  SpanStart,
  TraceContext,
  TraceSpan,
  Tracing,
} from './tracing.ts';

/** No attribute of ours is longer; what a mistake puts there is cut. */
const MAX_VALUE_CHARS = 256;
const MAX_ATTRIBUTES = 32;

const KINDS: Readonly<Record<SpanKind, OtelKind>> = {
  server: OtelKind.SERVER,
  client: OtelKind.CLIENT,
  internal: OtelKind.INTERNAL,
};

interface OtlpOptions extends TracingOptions, ReportOptions {
  readonly endpoint: string;
  readonly bounds: ExportBounds;
}

/** Sends spans to a collector in batches, as OTLP over HTTP with JSON. It is never waited for, except at the end. */
export class OtlpTracing implements Tracing {
  readonly #tracer: Tracer;
  readonly #provider: TracerProvider;
  readonly #exporter: ReportedExporter;
  readonly #options: OtlpOptions;

  constructor(options: OtlpOptions) {
    const { endpoint, headers, component, instance = randomUUID(), version, bounds } = options;
    this.#options = options;
    this.#exporter = new ReportedExporter(
      new OTLPTraceExporter({
        url: `${endpoint}/v1/traces`,
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name, value.reveal()]),
        ),
        timeoutMillis: bounds.exportMs,
        // The last batches are sent at once.
        concurrencyLimit: Math.ceil(bounds.queue / bounds.batch) + 1,
        httpAgentOptions: { keepAlive: true },
      }),
      options,
    );
    this.#provider = new TracerProvider({
      resource: resourceFromAttributes({
        'service.namespace': 'svc',
        'service.name': `svc-${component}`,
        'service.instance.id': instance,
        'host.name': hostname(),
        ...(version === undefined ? {} : { 'service.version': version }),
      }),
      // What is not recorded has no span in the first place.
      sampler: new AlwaysOnSampler(),
      spanLimits: {
        attributeCountLimit: MAX_ATTRIBUTES,
        attributeValueLengthLimit: MAX_VALUE_CHARS,
        eventCountLimit: 0,
        linkCountLimit: 0,
      },
      spanProcessors: [
        new BatchSpanProcessor({
          exporter: this.#exporter,
          maxQueueSize: bounds.queue,
          maxExportBatchSize: bounds.batch,
          scheduledDelayMillis: bounds.delayMs,
          // The exporter has its own deadline, which comes first.
          exportTimeoutMillis: 2 * bounds.exportMs,
        }),
      ],
    });
    this.#tracer = this.#provider.getTracer('svc');
  }

  start({ name, kind, parent, startedAt, attributes = {} }: SpanStart): TraceSpan {
    const span = this.#tracer.startSpan(
      name,
      {
        kind: KINDS[kind],
        attributes: defined(attributes),
        ...(startedAt === undefined ? {} : { startTime: startedAt }),
      },
      parent === undefined ? ROOT_CONTEXT : contextOf(parent),
    );
    return new OtlpSpan(span, () => this.#exporter.noteEnded());
  }

  takesNew(): boolean {
    return Math.random() < this.#options.ratio;
  }

  async close(): Promise<void> {
    const { bounds, logger } = this.#options;
    // Each export reports its own failure.
    const isDone = await settledWithin(this.#provider.shutdown(), bounds.closeMs);
    if (!isDone) logger.warn('the last spans could not be sent in time');
  }
}

class OtlpSpan implements TraceSpan {
  readonly context: TraceContext;
  readonly #span: Span;
  readonly #onEnd: () => void;

  constructor(span: Span, onEnd: () => void) {
    const { traceId, spanId } = span.spanContext();
    this.context = { traceId, spanId, sampled: true };
    this.#span = span;
    this.#onEnd = onEnd;
  }

  set(attributes: SpanAttributes): void {
    this.#span.setAttributes(defined(attributes));
  }

  fail(error: unknown): void {
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.setAttribute('error.type', typeOf(error));
  }

  end(): void {
    if (!this.#span.isRecording()) return;
    this.#onEnd();
    this.#span.end();
  }
}

function contextOf({ traceId, spanId }: TraceContext): Context {
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  });
}

function defined(attributes: SpanAttributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}

/** The code of an error, or its name. Its message may contain anything. */
function typeOf(error: unknown): string {
  if (isServiceError(error)) return error.code;
  if (typeof error === 'string') return error;
  return error instanceof Error ? error.name : 'error';
}
