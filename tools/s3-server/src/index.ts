/**
 * A real S3 server for tests: OpenStack Swift with its S3 API, from the Debian package `python3-swift`.
 * It runs as one process with a private directory, on a free port, and ends with the process that started it.
 */

export { type Fault, FaultyProxy } from './faulty-proxy.ts';
export type { S3ServerSettings } from './settings.ts';
export { type S3Server, startS3Server } from './start-s3-server.ts';
