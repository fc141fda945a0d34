export { GrowingBuffer } from './growing-buffer.ts';
export { hasData } from './has-data.ts';
export { type JoinOptions, joinConnections } from './join-connections.ts';
export { LimitedStream, type LimitedStreamOptions, limitBody } from './limited-stream.ts';
