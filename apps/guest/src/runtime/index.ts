/** A session in the guest: its configuration by the worker, its agent, its clients' tasks and commands, its state. */
export type { RuntimeOptions } from './options.ts';
export { type Runtime, startRuntime } from './start-runtime.ts';
export { warmRuntime } from './warm-runtime.ts';
