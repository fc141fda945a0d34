import { type EndReason, LIMITS, type SandboxState } from '@svc/contract';

/** What the reaper knows of one sandbox. All times are monotonic milliseconds. */
export interface ReaperView {
  readonly state: SandboxState;
  readonly lifetimeEndsAt: number;
  readonly idleTimeoutMs: number;
  /** When it last was active; undefined while it is. Never before it reached running. */
  readonly idleSince: number | undefined;
  /** Clients attached by WebSocket. */
  readonly connections: number;
  readonly warned: boolean;
}

export interface ReaperVerdict {
  /** Tell the attached clients that the lifetime is about to end. */
  readonly warn: boolean;
  readonly end?: Extract<EndReason, 'max_lifetime' | 'idle_timeout'>;
}

const LEAVE: ReaperVerdict = { warn: false };

/**
 * What becomes of a sandbox at `now`, in this order: maximum lifetime, warning window, idle timeout.
 * Never early. The lifetime counts in every state; idleness only while running: a paused sandbox was parked
 * on purpose and keeps its place until its lifetime ends.
 */
export function decide(view: ReaperView, now: number): ReaperVerdict {
  const warnable = view.state === 'running' && view.connections > 0 && !view.warned;
  // A pass that came too late for the warning window still warns, just before the end.
  if (now >= view.lifetimeEndsAt) return { warn: warnable, end: 'max_lifetime' };
  const warn = warnable && now >= view.lifetimeEndsAt - LIMITS.lifetimeWarningSeconds * 1000;
  if (isIdle(view, now)) return { warn, end: 'idle_timeout' };
  return warn ? { warn } : LEAVE;
}

function isIdle(view: ReaperView, now: number): boolean {
  return (
    view.state === 'running' &&
    view.connections === 0 &&
    view.idleSince !== undefined &&
    now - view.idleSince >= view.idleTimeoutMs
  );
}
