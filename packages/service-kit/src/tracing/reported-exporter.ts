import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import type { Counter } from 'prom-client';
import type { TracingOptions } from './options.ts';

export interface ReportOptions extends Pick<TracingOptions, 'logger'> {
  /** By outcome: `ended`, `exported`, `failed`. */
  readonly spans: Counter<'outcome'>;
}

/** Counts the spans that an exporter sends or loses, and logs when it begins to fail and when it works again. */
export class ReportedExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #logger: TracingOptions['logger'];
  readonly #spans: Counter<'outcome'>;
  #isFailing = false;

  constructor(exporter: SpanExporter, { logger, spans }: ReportOptions) {
    this.#exporter = exporter;
    this.#logger = logger;
    this.#spans = spans;
  }

  /** Counts a span that waits to be exported, or is dropped because too many wait. */
  noteEnded(): void {
    this.#spans.inc({ outcome: 'ended' });
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.#exporter.export(spans, (result) => {
      const isFailure = result.code !== ExportResultCode.SUCCESS;
      this.#spans.inc({ outcome: isFailure ? 'failed' : 'exported' }, spans.length);
      if (isFailure && !this.#isFailing) {
        const reason = reasonOf(result.error);
        this.#logger.warn({ reason }, 'cannot send spans to the collector; they are lost');
      }
      if (!isFailure && this.#isFailing) this.#logger.info('spans reach the collector again');
      this.#isFailing = isFailure;
      // A failure has been reported, and the processor would report it to the console.
      done({ code: ExportResultCode.SUCCESS });
    });
  }

  forceFlush(): Promise<void> {
    return this.#exporter.forceFlush?.() ?? Promise.resolve();
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }
}

/** The answer of a collector is not logged: it may repeat what it was sent. */
function reasonOf(error: Error | undefined): string {
  if (error === undefined) return 'unknown';
  const { code } = error as { code?: unknown };
  return typeof code === 'string' || typeof code === 'number'
    ? String(code)
    : error.message.slice(0, 200);
}
