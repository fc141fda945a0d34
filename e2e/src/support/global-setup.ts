import type { TestProject } from 'vitest/node';
import type { ServiceAddress } from './service-address.ts';
import { startService } from './start-service.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The service that the tests share. */
    readonly service: ServiceAddress;
  }
}

/** Starts the service that all tests share which need none of their own. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const service = await startService();
  project.provide('service', service.address);
  return async () => service[Symbol.asyncDispose]();
}
