import type { Store } from '@svc/store';
import type { Fleet } from '../workers/fleet.ts';
import { SandboxCreator } from './create.ts';
import type { SandboxDeleter } from './delete.ts';
import { SandboxOperations } from './operations.ts';
import { SandboxReader } from './read.ts';
import type { CreateRules } from './rules.ts';
import type { SandboxStarter } from './start.ts';

/** The operations of callers on their sandboxes. */
export type Sandboxes = Pick<SandboxCreator, 'create'> &
  Pick<SandboxReader, 'get' | 'list'> &
  Pick<SandboxDeleter, 'delete'> &
  Pick<
    SandboxOperations,
    'exec' | 'streamExec' | 'download' | 'upload' | 'logs' | 'cancel' | 'pause' | 'resume'
  >;

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
  const operations = new SandboxOperations(store, fleet);
  return {
    create: (...call) => creator.create(...call),
    get: (...call) => reader.get(...call),
    list: (...call) => reader.list(...call),
    delete: (...call) => deleter.delete(...call),
    exec: (...call) => operations.exec(...call),
    streamExec: (...call) => operations.streamExec(...call),
    download: (...call) => operations.download(...call),
    upload: (...call) => operations.upload(...call),
    logs: (...call) => operations.logs(...call),
    cancel: (...call) => operations.cancel(...call),
    pause: (...call) => operations.pause(...call),
    resume: (...call) => operations.resume(...call),
  };
}
