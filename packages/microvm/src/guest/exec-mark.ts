import { randomInt } from 'node:crypto';

/** A process's usual timer slack, in nanoseconds. */
const USUAL_SLACK_NS = 50_000;
const MARKS = 50_000;

let last = randomInt(MARKS);

/**
 * A mark by which the processes of one command are found again: a timer slack of at most 0.1 ms that
 * nothing else uses. Every process inherits it, by fork and by exec, and unlike a variable of the
 * environment it is not lost on the way (PR_SET_TIMERSLACK in prctl(2)).
 */
export function nextExecMark(): number {
  last = (last + 1) % MARKS;
  return USUAL_SLACK_NS + 1 + last;
}
