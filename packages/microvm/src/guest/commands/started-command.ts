import { constants } from 'node:os';
import type { ClientChannel } from 'ssh2';
import { MicrovmError } from '../../microvm-error.ts';

/** A command that the guest has begun to run. */
export interface StartedCommand {
  readonly stream: ClientChannel;
  /** Settles with the exit code when the channel closes. Rejects with `guest_unreachable` if there is none. */
  readonly ended: Promise<number>;
}

/**
 * Call this synchronously in the callback that delivers the channel. The acknowledgement, output, exit code and end of
 * a short command can arrive in one packet, and their events then follow immediately.
 */
export function startedCommand(stream: ClientChannel): StartedCommand {
  return { stream, ended: exitOf(stream) };
}

/**
 * Closes the channel of a command that may still write. Nothing may follow the close of a channel (RFC 4254, 5.3), and the
 * guest's SSH server ends the connection, with all other commands, when something does. But `ssh2` still grants window for
 * output that arrives between its close and the guest's, unless the window looks wide enough.
 */
export function closeChannel(stream: ClientChannel): void {
  (stream.incoming as { window: number }).window = Number.POSITIVE_INFINITY;
  stream.close();
}

function exitOf(stream: ClientChannel): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let exitCode: number | undefined;
  stream.once('exit', (code: number | null, signalName?: string) => {
    exitCode = code ?? 128 + signalNumber(signalName);
  });
  stream.once('close', () => {
    if (exitCode !== undefined) resolve(exitCode);
    else reject(new MicrovmError('guest_unreachable', 'the connection to the guest was lost'));
  });
  promise.catch(() => undefined);
  return promise;
}

function signalNumber(name = ''): number {
  const full = (name.startsWith('SIG') ? name : `SIG${name}`) as NodeJS.Signals;
  return constants.signals[full] ?? 0;
}
