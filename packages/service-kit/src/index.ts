/**
 * Code that all servers of the service share. It knows nothing about sandboxes or tenants.
 *
 * - `addresses/`    which IP addresses are public
 * - `concurrency/`  deadlines, retries, locks and waits that can be cancelled
 * - `http/`         `createHttpServer`: problem+json, strict validation, request ids, HTTPS
 * - `logging/`      pino with redaction; short lines on a terminal
 * - `metrics/`      Prometheus registry, process and HTTP metrics
 * - `process/`      orderly shutdown, file locks, process identity, atomic writes
 * - `secret`        a value that cannot be printed by accident
 * - `streams/`      bounds for the bodies of uploads and other streams
 * - `tls/`          the local CA, server certificates, self-signed worker certificates
 * - `tokens/`       short-lived tokens between the components, and session tokens
 * - `tracing/`      the request that code serves, and its spans
 * - `websocket/`    WebSocket endpoints among the routes of an HTTP server
 *
 * Each folder can be imported on its own (`@svc/service-kit/process`). Commands that must start fast do that.
 */

export * from './addresses/index.ts';
export * from './concurrency/index.ts';
export * from './http/index.ts';
export * from './logging/index.ts';
export * from './metrics/index.ts';
export * from './process/index.ts';
export * from './secret.ts';
export * from './tls/index.ts';
export * from './tokens/index.ts';
export * from './tracing/index.ts';
