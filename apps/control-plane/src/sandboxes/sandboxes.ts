import type { Store } from '@svc/store';
import type { Fleet } from '../workers/fleet.ts';
import { SandboxCreator } from './create.ts';
import type { SandboxDeleter } from './delete.ts';
import { SandboxOperations } from './operations.ts';
import { SandboxReader } from './read.ts';
import type { CreateRules } from './rules.ts';
import type { SandboxStarter } from './start.ts';

/** The sandboxes of callers. */
export interface Sandboxes
  extends Pick<SandboxCreator, 'create'>,
    Pick<SandboxReader, 'get' | 'list'>,
    Pick<SandboxDeleter, 'delete'> {
  /** The operations on a running sandbox. */
  readonly operations: SandboxOperations;
}

export interface SandboxesParts {
  readonly store: Store;
  readonly fleet: Fleet;
  readonly starter: SandboxStarter;
  readonly deleter: SandboxDeleter;
  readonly rules: CreateRules;
}

export function createSandboxes(parts: SandboxesParts): Sandboxes {
  const { store, fleet, starter, deleter, rules } = parts;
  const creator = new SandboxCreator(store, starter, rules);
  const reader = new SandboxReader(store, fleet);
  return {
    create: (...call) => creator.create(...call),
    get: (...call) => reader.get(...call),
    list: (...call) => reader.list(...call),
    delete: (...call) => deleter.delete(...call),
    operations: new SandboxOperations(store, fleet),
  };
}
