/**
 * Processes of an agent: they run as the owner of its home directory, in a process group of their own, and end
 * with the runtime at the latest.
 *
 * - {@link runProcess}    a program that is waited for, such as a shell command of a tool
 * - {@link startProcess}  one that is talked to while it runs, such as a vendor's CLI
 */
export { type ProcessOutput, type RunOptions, type RunResult, runProcess } from './run-process.ts';
export {
  type AgentProcess,
  type ProcessContext,
  type ProcessExit,
  type ProcessRequest,
  startProcess,
} from './start-process.ts';
