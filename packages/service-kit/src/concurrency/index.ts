export { settledWithin, untilAborted } from './abort.ts';
export { Charge } from './charge.ts';
export { type Deadline, openDeadline, withDeadline } from './deadline.ts';
export { FairStarts, type FairStartsOptions } from './fair-starts.ts';
export type { HeldSlot } from './held-slot.ts';
export { type Budget, KeyedBudget, type Sharing } from './keyed-budget.ts';
export { KeyedSlots } from './keyed-slots.ts';
export { KeyedTokenBuckets } from './keyed-token-buckets.ts';
export { Mutex } from './mutex.ts';
export { type BackoffOptions, backoffMs, type RetryOptions, retry } from './retry.ts';
export { SingleFlight } from './single-flight.ts';
export { sleep } from './sleep.ts';
export { Slots } from './slots.ts';
export { type Rate, TokenBucket } from './token-bucket.ts';
export {
  CleanupError,
  type CleanupStep,
  runEveryStep,
  runStepsTogether,
  UndoList,
} from './undo.ts';
export { Wakeable } from './wakeable.ts';
