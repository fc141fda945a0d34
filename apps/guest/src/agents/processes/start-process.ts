import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import type { AgentContext } from '../agent.ts';
import { ProcessGroups, signalGroup } from './process-groups.ts';
import { ownerOf, unprotect } from './process-owner.ts';

/** What a process needs to know of the agent that it belongs to. An {@link AgentContext} is one. */
export type ProcessContext = Pick<AgentContext, 'home' | 'workingDirectory' | 'env' | 'signal'>;

/** A program to start. Nothing of it is looked at by a shell. */
export interface ProcessRequest {
  /** A path, or a name that the PATH of the agent's environment leads to. */
  readonly command: string;
  readonly args?: readonly string[];
  /** Default: the agent's working directory. */
  readonly cwd?: string;
  /** Added to the agent's environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** How a process ended: by an exit code, or by a signal, which counts as 128 and its number. */
export interface ProcessExit {
  readonly exitCode: number;
  readonly signal?: NodeJS.Signals;
}

/** A process that runs, and leads a process group. */
export interface AgentProcess {
  readonly pid: number;
  /** Errors of it (the process has closed it) are swallowed: how the process ended says more. */
  readonly stdin: Writable;
  /** Both outputs must be read, or ended by `destroy()`: a process whose output nobody reads stands still. */
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Settles (never rejects) when the process has ended; what it wrote may still be on its way. */
  readonly exited: Promise<ProcessExit>;
  /** Signals the whole group; SIGKILL by default. Idempotent. */
  kill(signal?: NodeJS.Signals): void;
}

const groupsOf = new WeakMap<AbortSignal, ProcessGroups>();

/**
 * Starts a program as the owner of the agent's home directory, with the agent's environment and nothing of the
 * runtime's own. Its whole group is killed when `context.signal` aborts.
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
  // The failure itself comes as an event.
  if (pid === undefined) throw (await once(child, 'error'))[0];
  unprotect(pid);
  // An error after the start (a signal that cannot be sent) is no reason for the runtime to end.
  child.on('error', () => undefined);
  const groups = groupsUntil(context.signal);
  groups.add(pid);
  void exited.then(() => groups.leaderEnded(pid));
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

/** The groups that end when `signal` aborts. */
function groupsUntil(signal: AbortSignal): ProcessGroups {
  const known = groupsOf.get(signal);
  if (known !== undefined) return known;
  const groups = new ProcessGroups();
  groupsOf.set(signal, groups);
  signal.addEventListener('abort', () => groups.killAll(), { once: true });
  return groups;
}

function describeExit(code: number | null, signal: NodeJS.Signals | null): ProcessExit {
  if (signal === null) return { exitCode: code ?? 0 };
  return { exitCode: 128 + (constants.signals[signal] ?? 0), signal };
}
