/** What the rest of the service knows of tracing. Nothing here loads OpenTelemetry. */

/** A position in a trace, in the terms of W3C Trace Context. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Whether the spans of this trace are recorded. */
  readonly sampled: boolean;
}

/** Who waits for the work of a span: a caller of this component, this component for another one, or nobody else. */
export type SpanKind = 'server' | 'client' | 'internal';

/** Never a secret, a body or a URL. Undefined values are left out. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanStart {
  /** One of few: a route pattern, never a path. */
  readonly name: string;
  readonly kind: SpanKind;
  /** Undefined for the first span of a trace. */
  readonly parent?: TraceContext | undefined;
  /** Default: now. */
  readonly startedAt?: Date | undefined;
  readonly attributes?: SpanAttributes | undefined;
}

/** A recorded piece of work. */
export interface TraceSpan {
  readonly context: TraceContext;
  set(attributes: SpanAttributes): void;
  /** Marks the work as failed with the code or the name of the error, never its message. */
  fail(error: unknown): void;
  /** Later calls have no effect. */
  end(): void;
}

/** Records the spans of one component and sends them to a collector. */
export interface Tracing {
  /** Starts a span, which is recorded in any case: the caller asks {@link takesNew} or has a sampled parent. */
  start(span: SpanStart): TraceSpan;
  /** Decides at the configured ratio whether a request from outside is recorded. */
  takesNew(): boolean;
  /** Sends what is left, and gives up after a few seconds. Never rejects. */
  close(): Promise<void>;
}
