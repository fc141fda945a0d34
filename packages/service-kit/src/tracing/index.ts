export { openTracing } from './open-tracing.ts';
export type { ExportBounds, TracingOptions } from './options.ts';
export {
  callHeaders,
  currentOrigin,
  currentRequest,
  inSpan,
  RequestScope,
  type TraceOrigin,
  trustCaller,
} from './request-scope.ts';
export { formatTraceparent, parseTraceparent, TRACEPARENT_HEADER } from './traceparent.ts';
export type {
  SpanAttributes,
  SpanKind,
  SpanStart,
  TraceContext,
  TraceSpan,
  Tracing,
} from './tracing.ts';
