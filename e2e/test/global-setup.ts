import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServiceAddress } from '@svc/service-driver';
import type { ProvidedContext } from 'vitest';
import type { TestProject } from 'vitest/node';
import { modelEnvironment } from './models.ts';
import { startService } from './start-service.ts';
import { builtTemplates } from './templates.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The shared service. */
    readonly service: ServiceAddress;
  }
}

/** Sandboxes that an account of the shared service may have at a time: few, so that a test can reach the limit. */
export const SANDBOX_LIMIT = 8;

/**
 * Starts the service that all test files share unless they start their own. The first project of a run starts it for all, and
 * ends it: vitest sets projects up in order, and tears them down in reverse.
 */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | void> {
  const started: Partial<ProvidedContext> = project.getProvidedContext();
  if (started.service !== undefined) return;
  const all = project.vitest.getRootProject();
  const modelTlsDirectory = await mkdtemp(join(tmpdir(), 'svc-e2e-models-'));
  const service = await startService({
    env: {
      SVC_TEMPLATES: (await builtTemplates()).join(','),
      SVC_LIMIT_SANDBOXES_PER_TENANT: String(SANDBOX_LIMIT),
      ...(await modelEnvironment(modelTlsDirectory)),
    },
  });
  all.provide('modelTlsDirectory', modelTlsDirectory);
  all.provide('service', service.address);
  return async () => {
    await service[Symbol.asyncDispose]();
    await rm(modelTlsDirectory, { recursive: true, force: true });
  };
}
