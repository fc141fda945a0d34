import { type EndReason, LIMITS, type SandboxState } from '@svc/contract';

/** The properties of a sandbox that the reaper decides by. All times are monotonic milliseconds. */
export interface ReaperView {
  readonly state: SandboxState;
  readonly lifetimeEndsAt: number;
  readonly idleTimeoutMs: number;
  /** End of its last activity; undefined while it is active. Never before it reached `running`. */
  readonly idleSince: number | undefined;
  /** Number of attached clients. */
  readonly connections: number;
  readonly warned: boolean;
}

export interface ReaperVerdict {
  /** Whether to tell the attached clients that the lifetime is about to end. */
  readonly warn: boolean;
  readonly end?: Extract<EndReason, 'max_lifetime' | 'idle_timeout'>;
}

/**
 * Decides what to do with a sandbox at `now`. Checks the maximum lifetime first, then the warning window, then the idle
 * timeout. Never early. The lifetime counts in every state, idleness only while running: a paused sandbox was paused
 * on purpose and stays until its lifetime ends.
 */
export function decide(view: ReaperView, now: number): ReaperVerdict {
  const warnable = view.state === 'running' && view.connections > 0 && !view.warned;
  // A pass that missed the warning window still warns, just before the end.
  if (now >= view.lifetimeEndsAt) return { warn: warnable, end: 'max_lifetime' };
  const warn = warnable && now >= view.lifetimeEndsAt - LIMITS.lifetimeWarningSeconds * 1000;
  if (isIdle(view, now)) return { warn, end: 'idle_timeout' };
  return { warn };
}

function isIdle(view: ReaperView, now: number): boolean {
  return (
    view.state === 'running' &&
    view.connections === 0 &&
    view.idleSince !== undefined &&
    now - view.idleSince >= view.idleTimeoutMs
  );
}
