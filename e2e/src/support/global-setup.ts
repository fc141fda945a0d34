import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { modelEnvironment } from './models.ts';
import type { ServiceAddress } from './service-address.ts';
import { SANDBOX_LIMIT } from './shared-limits.ts';
import { startService } from './start-service.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The service that the tests share. */
    readonly service: ServiceAddress;
  }
}

/** Starts the service that all tests share which need none of their own. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const modelTlsDirectory = await mkdtemp(join(tmpdir(), 'svc-e2e-models-'));
  const service = await startService({
    env: {
      SVC_LIMIT_SANDBOXES_PER_TENANT: String(SANDBOX_LIMIT),
      ...(await modelEnvironment(modelTlsDirectory)),
    },
  });
  project.provide('modelTlsDirectory', modelTlsDirectory);
  project.provide('service', service.address);
  return async () => {
    await service[Symbol.asyncDispose]();
    await rm(modelTlsDirectory, { recursive: true, force: true });
  };
}
