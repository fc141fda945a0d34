import { untilAborted } from '@svc/service-kit/concurrency';
import type { ClientChannel } from 'ssh2';
import type { MicrovmExecRequest, MicrovmExecResult } from '../../microvm.ts';
import type { CommandKiller } from './command-killer.ts';
import { nextExecMark } from './exec-mark.ts';
import { execCall, execScript } from './exec-script.ts';
import type { SshConnection } from './ssh-connection.ts';
import { askForOutput } from './ssh-limits.ts';

const HOME = '/root';
/** Time limit for a command to be killed and its SSH channel to close. */
const KILL_MS = 5000;

export interface RunCommandOptions {
  readonly ssh: SshConnection;
  readonly killer: Pick<CommandKiller, 'kill' | 'forget'>;
  readonly env: Readonly<Record<string, string>>;
}

/** Runs a command over SSH. Aborting kills every process the command started and throws the signal's reason. */
export async function runCommand(
  { ssh, killer, env }: RunCommandOptions,
  request: MicrovmExecRequest,
  signal: AbortSignal,
): Promise<MicrovmExecResult> {
  const mark = nextExecMark();
  killer.forget(mark);
  const script = execScript({
    mark,
    command: request.command,
    cwd: request.cwd ?? HOME,
    env: { ...env, ...request.env },
  });
  const { line, input } = execCall(script);
  const { stream, ended } = await ssh.exec(line, signal);
  stream.end(input);
  const outputs = Promise.all([
    deliver(stream, 'stdout', request, signal),
    deliver(stream, 'stderr', request, signal),
  ]);
  // Awaited below. Until then a failure must not count as an unhandled rejection.
  outputs.catch(() => undefined);
  const aborted = Promise.withResolvers<never>();
  aborted.promise.catch(() => undefined);
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    const work = Promise.all([ended, outputs]);
    const [exitCode] = await Promise.race([work, aborted.promise]);
    return { exitCode };
  } catch (error) {
    await endCommand(killer, stream, mark, ended);
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Passes output on until the signal aborts, and discards the rest. */
async function deliver(
  stream: ClientChannel,
  name: 'stdout' | 'stderr',
  { onOutput }: MicrovmExecRequest,
  signal: AbortSignal,
): Promise<void> {
  const source = stream[name];
  try {
    // Destroying the stream would close the channel before the command is killed.
    for await (const chunk of source.iterator({ destroyOnReturn: false })) {
      askForOutput(stream);
      if (!signal.aborted) await onOutput(name, chunk);
    }
  } finally {
    source.resume();
  }
}

/** Kills the command's processes. Closes the SSH channel even when the guest has not killed them in time. */
async function endCommand(
  killer: Pick<CommandKiller, 'kill'>,
  stream: ClientChannel,
  mark: number,
  ended: Promise<number>,
): Promise<void> {
  const deadline = AbortSignal.timeout(KILL_MS);
  await killer.kill(mark, deadline);
  stream.close();
  // A guest that is paused does not confirm it.
  await untilAborted(ended, deadline).catch(() => undefined);
}
