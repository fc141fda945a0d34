import { spawn } from 'node:child_process';
import { type ProcessOwner, unprotect } from '../agents/processes/process-owner.ts';

const KEPT_OUTPUT = 2_000;
const TOOL_MS = 180_000;

export interface ToolOptions {
  readonly owner: ProcessOwner;
  readonly cwd: string;
  /** Open files for its input and output. Without them its input is empty and its output is returned. */
  readonly stdin?: number;
  readonly stdout?: number;
  readonly signal: AbortSignal;
}

export interface ToolResult {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The end of each output, bounded; empty for an output written to a file. */
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a system tool on the agent's files. It is killed after three minutes, or when `signal` aborts. */
export function runTool(
  command: string,
  args: readonly string[],
  { owner, cwd, stdin, stdout, signal }: ToolOptions,
): Promise<ToolResult> {
  const { promise, resolve, reject } = Promise.withResolvers<ToolResult>();
  const child = spawn(command, args, {
    ...owner,
    cwd,
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    stdio: [stdin ?? 'ignore', stdout ?? 'pipe', 'pipe'],
    timeout: TOOL_MS,
    killSignal: 'SIGKILL',
    signal,
  });
  if (child.pid !== undefined) unprotect(child.pid);
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      written[name] = (written[name] + text).slice(-KEPT_OUTPUT);
    });
  }
  child.once('error', reject);
  child.once('close', (exitCode, killed) => resolve({ exitCode, signal: killed, ...written }));
  return promise;
}
