import type { Microvm } from '@svc/microvm';
import type { SandboxAgent } from '../sandbox/agent.ts';
import type { PreparedAgent } from './agent-starter.ts';

/** What happens to the result of a preparation: one of the two. */
export interface PreparedUse<T> {
  readonly start: (prepared: T, vm: Microvm, signal: AbortSignal) => Promise<SandboxAgent>;
  readonly discard: (prepared: T) => Promise<void>;
}

/** An agent whose preparation runs while its VM is being made. */
export function prepareAgent<T>(preparing: Promise<T>, use: PreparedUse<T>): PreparedAgent {
  // The start reports a failure; a create that fails before it does not need to.
  preparing.catch(() => undefined);
  let isTaken = false;
  return {
    start: async (vm, signal) => {
      const prepared = await preparing;
      isTaken = true;
      return use.start(prepared, vm, signal);
    },
    abandon: async () => {
      if (isTaken) return;
      const prepared = await preparing.catch(() => undefined);
      if (prepared !== undefined) await use.discard(prepared);
    },
  };
}
