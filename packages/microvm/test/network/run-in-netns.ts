import { runProgram } from '@svc/service-kit/process';

/** Runs a program in a network namespace and returns its output. */
export function runInNetns(netns: string, program: string, args: readonly string[], input = '') {
  return runProgram('nsenter', [`--net=/run/netns/${netns}`, program, ...args], input);
}
