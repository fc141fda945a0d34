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
