import type { Store } from '@svc/store';
import type { SessionAccessIssuer } from '../sessions/access.ts';
import type { Fleet } from '../workers/fleet.ts';
import { AgentConnector } from './connect.ts';
import { SandboxCreator } from './create.ts';
import type { SandboxDeleter } from './delete.ts';
import { SandboxLogs } from './logs.ts';
import { SandboxOperations } from './operations.ts';
import { SandboxReader } from './read.ts';
import type { CreateRules } from './rules.ts';
import type { SandboxStarter } from './start.ts';
import type { TenantOperations } from './tenant-operations.ts';

/** The sandboxes of callers. */
export interface Sandboxes
  extends Pick<SandboxCreator, 'create'>,
    Pick<SandboxReader, 'get' | 'list'>,
    Pick<SandboxDeleter, 'delete'>,
    Pick<AgentConnector, 'connect'> {
  /** The operations on a running sandbox. */
  readonly operations: SandboxOperations;
  readonly logs: SandboxLogs;
}

export interface SandboxesParts {
  readonly store: Store;
  readonly fleet: Fleet;
  readonly starter: SandboxStarter;
  readonly deleter: SandboxDeleter;
  readonly rules: CreateRules;
  readonly access: SessionAccessIssuer;
  /** Commands and file transfers. */
  readonly operations: TenantOperations;
  /** Every other call to a worker, except for creations and deletions, which the ledger bounds. */
  readonly calls: TenantOperations;
  /** How many a tenant may have at a time. */
  readonly mostPerTenant: number;
}

export function createSandboxes(parts: SandboxesParts): Sandboxes {
  const { store, fleet, starter, deleter, rules, access, operations, calls, mostPerTenant } = parts;
  const creator = new SandboxCreator(store, starter, rules);
  const reader = new SandboxReader(store, fleet, calls, mostPerTenant);
  const connector = new AgentConnector(store, access);
  return {
    create: (...call) => creator.create(...call),
    get: (...call) => reader.get(...call),
    list: (...call) => reader.list(...call),
    delete: (...call) => deleter.delete(...call),
    connect: (...call) => connector.connect(...call),
    operations: new SandboxOperations({ store, fleet, operations, calls }),
    logs: new SandboxLogs(store, fleet, calls),
  };
}
