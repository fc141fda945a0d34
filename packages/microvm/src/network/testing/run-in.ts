import { run } from '../command.ts';

/** Runs a program inside a network namespace and returns its output. */
export function runIn(netns: string, program: string, args: readonly string[], input = '') {
  return run('nsenter', [`--net=/run/netns/${netns}`, program, ...args], input);
}
