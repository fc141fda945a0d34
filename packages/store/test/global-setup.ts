/** For vitest: one server for all test files of a run. */
export { startSharedServer as setup } from './shared-server.ts';
