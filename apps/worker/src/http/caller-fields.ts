import type { PlaceSandboxRequest, WorkerSandboxParams } from '@svc/contract';
import type { CallerFields } from '@svc/service-kit';
import type { SandboxRegistry } from '../sandbox/registry.ts';
import type { SessionRegistry } from '../sessions/registry.ts';

/** Makes the fields of a request to a worker: the account of its sandbox or session, or of the sandbox that it creates. */
export function callerFieldsOf(registry: SandboxRegistry, sessions: SessionRegistry): CallerFields {
  return ({ params, body }) => {
    const { id = '' } = params as Partial<WorkerSandboxParams>;
    const sandbox = registry.find(id) ?? sessions.find(id)?.sandbox;
    const created = body as Partial<PlaceSandboxRequest> | null | undefined;
    return { tenant_id: sandbox?.assignment.tenant_id ?? created?.tenant_id };
  };
}
