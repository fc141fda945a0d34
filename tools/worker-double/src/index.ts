/** A worker for the tests of its callers: it serves the internal API, but its sandboxes are only records. */
export { ComponentDouble, controlPlaneKeys } from './component-double.ts';
export type { Answer, Lie, Operation } from './lies.ts';
export type { AttachedSession } from './session-sockets.ts';
export { WorkerDouble } from './worker-double.ts';
