/**
 * What every server of the service shares. Knows nothing of sandboxes or tenants.
 *
 * - `config/`   the environment, read once, every problem at once; the table its documentation is made of
 * - `logging/`  pino with redaction; short lines on a terminal
 * - `http/`     `createHttpServer`: problem+json, strict validation, request ids, HTTPS
 * - `tls/`      the local CA, server certificates, self-signed worker certificates
 * - `tokens/`   short-lived tokens between the pieces, and those of sessions
 * - `process/`  orderly shutdown, file locks, process identity, atomic writes, retries
 * - `metrics/`  Prometheus registry, process and HTTP metrics
 * - `secret`    a value that cannot be shown by accident
 *
 * Each folder can be imported alone (`@svc/service-kit/config`), which a quick command should do.
 */

export * from './concurrency/index.ts';
export * from './config/index.ts';
export * from './http/index.ts';
export * from './logging/index.ts';
export * from './metrics/index.ts';
export * from './process/index.ts';
export * from './secret.ts';
export * from './tls/index.ts';
export * from './tokens/index.ts';
