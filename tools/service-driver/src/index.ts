/** Starts private services for tests and measurements, and inspects them from the outside. */

export { interruptSignal } from '@svc/service-kit/process';
export { BUILT_IMAGES, CACHED_PROGRAMS } from '@svc/service-kit/testing';
export { type DatabaseServer, databaseServer } from './database-server.ts';
export { DetachedService } from './detached-service.ts';
export { callersEnvironment } from './environment.ts';
export { mailedCode } from './mailed-code.ts';
export { orIfAbsent } from './or-if-absent.ts';
export {
  PrivateService,
  type PrivateServiceOptions,
  type ServiceAddress,
} from './private-service.ts';
export { cpuMs, proportionalMib, residentMib } from './process-usage.ts';
export { RuntimeHost } from './runtime-host.ts';
export { readServiceRecord, type ServiceRecord } from './service-record.ts';
export { runSvc, SvcProcess, type SvcResult } from './svc-process.ts';
export { type UntilOptions, until } from './until.ts';
export { type VmRecord, vmPid, vmRecords } from './vm-records.ts';
