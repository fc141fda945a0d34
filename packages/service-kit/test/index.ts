export { freePort, freePorts } from './free-ports.ts';
export { OtlpCollector, type ReceivedSpan } from './otlp-collector.ts';
export { insideEdges, outsideEdges } from './range-edges.ts';
export { BUILT_IMAGES, CACHED_PROGRAMS } from './user-cache.ts';
