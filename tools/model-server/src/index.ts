/**
 * A server that speaks the wire formats of the model vendors and answers from a script.
 * For development, tests and the demo; see README.md.
 */

export type { DialectName } from './dialects/index.ts';
export { type LocalTls, localTls } from './local-tls.ts';
export type { RecordedRequest } from './requests.ts';
export { parseScript, type Reply, type Rule, type Script, type When } from './script.ts';
export { type ModelServer, type ModelServerOptions, startModelServer } from './server.ts';
