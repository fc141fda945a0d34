import { LIMITS, SANDBOX_STATES, type SandboxState, ServiceError } from '@svc/contract';
import type { Clock } from '../clock.ts';
import type { Sandbox } from './sandbox.ts';

const MAX_DESTROYED = 10_000;

/** The sandboxes of this worker by id. Destroyed ones are kept for a while, so that they can be reported. */
export class SandboxRegistry {
  readonly #clock: Clock;
  readonly #sandboxes = new Map<string, Sandbox>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Adds a sandbox. Replaces an earlier generation, which must have been destroyed. */
  add(sandbox: Sandbox): void {
    // Deleted first, so that the map stays in insertion order.
    this.#sandboxes.delete(sandbox.id);
    this.#sandboxes.set(sandbox.id, sandbox);
  }

  /** Forgets a sandbox whose create failed. */
  remove(sandbox: Sandbox): void {
    if (this.#sandboxes.get(sandbox.id) === sandbox) this.#sandboxes.delete(sandbox.id);
  }

  find(vmId: string): Sandbox | undefined {
    return this.#sandboxes.get(vmId);
  }

  /** @throws ServiceError `sandbox_not_found` */
  get(vmId: string): Sandbox {
    const sandbox = this.find(vmId);
    if (sandbox === undefined) throw new ServiceError('sandbox_not_found');
    return sandbox;
  }

  all(): Sandbox[] {
    return [...this.#sandboxes.values()];
  }

  live(): Sandbox[] {
    return this.all().filter((sandbox) => sandbox.isLive);
  }

  countByState(): Record<SandboxState, number> {
    const counts = Object.fromEntries(SANDBOX_STATES.map((state) => [state, 0])) as Record<
      SandboxState,
      number
    >;
    for (const { state } of this.#sandboxes.values()) counts[state] += 1;
    return counts;
  }

  /** Forgets destroyed sandboxes after the retention time, and the oldest ones beyond the bound. */
  sweep(): void {
    const horizon = this.#clock.monotonic() - LIMITS.destroyedRecordSeconds * 1000;
    const destroyed = this.all()
      .filter((sandbox) => !sandbox.isLive)
      .sort((a, b) => (b.endedAt ?? 0) - (a.endedAt ?? 0));
    for (const [index, sandbox] of destroyed.entries()) {
      if ((sandbox.endedAt ?? 0) < horizon || index >= MAX_DESTROYED) this.remove(sandbox);
    }
  }
}
