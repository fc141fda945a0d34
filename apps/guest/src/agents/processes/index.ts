/**
 * Processes of an agent. Each runs as the owner of the agent's home directory, in a process group of its own, and
 * ends with the runtime at the latest.
 *
 * - {@link runProcess}    runs a program to completion
 * - {@link runShell}      runs a shell command to completion
 * - {@link startProcess}  starts a program for interactive use, such as a vendor's CLI
 */

export { type ProcessOutput, type RunOptions, type RunResult, runProcess } from './run-process.ts';
export { runShell } from './run-shell.ts';
export {
  type AgentProcess,
  type ProcessContext,
  type ProcessExit,
  type ProcessRequest,
  startProcess,
} from './start-process.ts';
