import type { Config } from '@svc/config';
import { type DrainTimes, NO_DRAIN, type ShutdownTask } from '@svc/service-kit/process';

/** Time for a shutdown task beyond that of its drain, which is not exact. */
const MARGIN_MS = 5_000;

/** How a process treats the requests in progress when it stops. */
export interface DrainPlan {
  readonly times: DrainTimes;
  /** Called at shutdown: whether requests get these times, rather than none. */
  readonly applies: () => boolean;
}

/** Stops without waiting for requests. */
export const NO_DRAIN_PLAN: DrainPlan = { times: NO_DRAIN, applies: () => false };

/** The configured times of a drain. `noticeSeconds` applies if `SVC_DRAIN_NOTICE_SECONDS` is not set. */
export function configuredDrain(
  { drainSeconds, drainNoticeSeconds }: Config,
  noticeSeconds: number,
): DrainTimes {
  return { noticeMs: 1000 * (drainNoticeSeconds ?? noticeSeconds), workMs: 1000 * drainSeconds };
}

/** The shutdown task that drains a component as planned. */
export function drainTask(
  name: string,
  { times, applies }: DrainPlan,
  drain: (times: DrainTimes, signal: AbortSignal) => Promise<void>,
): ShutdownTask {
  return {
    name,
    phase: 'drain',
    deadlineMs: times.noticeMs + times.workMs + MARGIN_MS,
    run: (signal) => drain(applies() ? times : NO_DRAIN, signal),
  };
}
