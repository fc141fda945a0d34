import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import type { AgentContext } from '../agent.ts';
import { ProcessGroups, signalGroup } from './process-groups.ts';
import { ownerOf, unprotect } from './process-owner.ts';

/** The properties of its agent that a process depends on. An {@link AgentContext} has them. */
export type ProcessContext = Pick<AgentContext, 'home' | 'workingDirectory' | 'env' | 'signal'>;

/** A program to start, without a shell. */
export interface ProcessRequest {
  /** A path, or a name to look up in the PATH of the agent's environment. */
  readonly command: string;
  readonly args?: readonly string[];
  /** Default: the agent's working directory. */
  readonly cwd?: string;
  /** Added to the agent's environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** How a process ended. The exit code of a process killed by a signal is 128 plus the signal's number. */
export interface ProcessExit {
  readonly exitCode: number;
  readonly signal?: NodeJS.Signals;
}

/** A running process, leader of a process group. */
export interface AgentProcess {
  readonly pid: number;
  /** Its errors (the process closed it) are ignored: the exit of the process is more telling. */
  readonly stdin: Writable;
  /** Both outputs must be read or destroyed, or the process blocks. */
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Settles (never rejects) when the process has exited. Its output may not have been read to the end yet. */
  readonly exited: Promise<ProcessExit>;
  /** Signals the whole group; SIGKILL by default. Idempotent. */
  kill(signal?: NodeJS.Signals): void;
}

const groupsBySignal = new WeakMap<AbortSignal, ProcessGroups>();

/**
 * Starts a program as the owner of the agent's home directory, with the agent's environment instead of the
 * runtime's. Its whole group is killed when `context.signal` aborts.
 * @throws an error with `code` (ENOENT, EACCES …) when it cannot be started
 */
export async function startProcess(
  context: ProcessContext,
  request: ProcessRequest,
): Promise<AgentProcess> {
  context.signal.throwIfAborted();
  const owner = await ownerOf(context.home);
  context.signal.throwIfAborted();
  const child = spawn(request.command, request.args ?? [], {
    ...owner,
    cwd: request.cwd ?? context.workingDirectory,
    env: { ...context.env(), ...request.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  const exited = new Promise<ProcessExit>((resolve) => {
    child.once('exit', (code, signal) => resolve(describeExit(code, signal)));
  });
  child.stdin.on('error', () => child.stdin.destroy());
  const { pid } = child;
  // The reason arrives as an event.
  if (pid === undefined) throw (await once(child, 'error'))[0];
  unprotect(pid);
  // Errors after the start, such as a signal that cannot be sent, must not end the runtime.
  child.on('error', () => undefined);
  const groups = groupsOf(context.signal);
  groups.add(pid);
  void exited.then(() => groups.leaderExited(pid));
  return {
    pid,
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    exited,
    kill: (signal = 'SIGKILL') => {
      signalGroup(pid, signal);
    },
  };
}

/** The groups to kill when `signal` aborts. */
function groupsOf(signal: AbortSignal): ProcessGroups {
  const known = groupsBySignal.get(signal);
  if (known !== undefined) return known;
  const groups = new ProcessGroups();
  groupsBySignal.set(signal, groups);
  signal.addEventListener('abort', () => groups.killAll(), { once: true });
  return groups;
}

function describeExit(code: number | null, signal: NodeJS.Signals | null): ProcessExit {
  if (signal === null) return { exitCode: code ?? 0 };
  return { exitCode: 128 + (constants.signals[signal] ?? 0), signal };
}
