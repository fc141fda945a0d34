export { acceptFormOnly, acceptRawJsonOnly, acceptStreamOnly } from './body-parsers.ts';
export { ClientGoneError, clientGoneSignal, isClientGone } from './client-gone.ts';
export { formatEvent, KEEPALIVE_COMMENT } from './event-stream.ts';
export { toServiceError } from './framework-errors.ts';
export { closeGracefully } from './graceful-close.ts';
export { isTooDeep, MAX_JSON_DEPTH } from './json-depth.ts';
export { RequestDrain } from './request-drain.ts';
export { REQUEST_ID_HEADER } from './request-id.ts';
export { createHttpServer, type HttpServer, type HttpServerOptions } from './server.ts';
