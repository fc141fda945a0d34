import { randomInt } from 'node:crypto';

/** The default timer slack of a process, in nanoseconds. */
const DEFAULT_SLACK_NS = 50_000;
const MARKS = 50_000;

let last = randomInt(MARKS);

/**
 * A mark that identifies the processes of one command: a timer slack of at most 0.1 ms that no other process uses.
 * Child processes inherit it across fork and exec, and unlike an environment variable they cannot lose it by accident
 * (PR_SET_TIMERSLACK in prctl(2)).
 */
export function nextExecMark(): number {
  last = (last + 1) % MARKS;
  return DEFAULT_SLACK_NS + 1 + last;
}
