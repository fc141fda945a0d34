export type { ControlPlaneAddress, RuntimeHost, RuntimeHostOptions } from './options.ts';
export { startRuntimeHost } from './runtime-host.ts';
