import { LIMITS } from '@svc/contract';
import { sleep, untilAborted } from '@svc/service-kit/concurrency';
import type { Clock } from '../clock.ts';
import type { SandboxRegistry } from '../sandbox/registry.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { decide, type ReaperView } from './decide.ts';

export interface ReaperOptions {
  readonly registry: SandboxRegistry;
  readonly clock: Clock;
  readonly onFault: (error: unknown, action: string) => void;
}

/** Ends sandboxes that are idle or past their lifetime, warns clients before that, and forgets old records. */
export class Reaper {
  readonly #options: ReaperOptions;
  /** Sandboxes whose clients have been told that the lifetime is about to end. */
  readonly #warned = new WeakSet<Sandbox>();
  readonly #begun = Promise.withResolvers<void>();

  constructor(options: ReaperOptions) {
    this.#options = options;
  }

  /** A control plane has said which sandboxes it knows, so that from now on {@link run} makes passes. */
  begin(): void {
    this.#begun.resolve();
  }

  /**
   * Makes a pass every ten seconds until `signal` aborts, however long the previous one took. The first one comes when a
   * control plane has accepted a report: those that an earlier process left may be in quarantine.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    await untilAborted(this.#begun.promise, signal).catch(() => undefined);
    if (!signal.aborted) this.pass();
    let next = clock.monotonic();
    while (!signal.aborted) {
      next = Math.max(next + LIMITS.reaperIntervalMs, clock.monotonic());
      await sleep(next - clock.monotonic(), signal);
      if (!signal.aborted) this.pass();
    }
  }

  /** Checks every sandbox once. Does not wait for teardowns, so that a slow one delays no other. */
  pass(): void {
    const { registry, clock, onFault } = this.#options;
    const now = clock.monotonic();
    for (const sandbox of registry.live()) {
      this.#judge(sandbox, now).catch((error) => onFault(error, `end ${sandbox.id}`));
    }
    registry.sweep();
  }

  async #judge(sandbox: Sandbox, now: number): Promise<void> {
    if (sandbox.isEnding) return;
    // Repeats a teardown that failed, with its first reason.
    if (sandbox.endReason !== undefined) return sandbox.end(sandbox.endReason);
    // It would end without being saved.
    if (sandbox.power.isHeld || sandbox.isQuarantined) return;
    const { warn, end } = decide(this.#viewOf(sandbox), now);
    if (warn) {
      this.#warned.add(sandbox);
      const warned = sandbox.cancel('timeout');
      // The end of the lifetime does not wait for the warning.
      warned.catch((error) => this.#options.onFault(error, `warn the clients of ${sandbox.id}`));
    }
    if (end !== undefined) await sandbox.end(end);
  }

  #viewOf(sandbox: Sandbox): ReaperView {
    return {
      state: sandbox.state,
      lifetimeEndsAt: sandbox.lifetimeEndsAt,
      idleTimeoutMs: sandbox.assignment.placement.idle_timeout_seconds * 1000,
      idleSince: sandbox.activity.idleSince,
      connections: sandbox.connections.count,
      warned: this.#warned.has(sandbox),
    };
  }
}
