export { hasData } from './has-data.ts';
export { LimitedStream, type LimitedStreamOptions, limitBody } from './limited-stream.ts';
