import { ERRORS, type ExecRequest, isServiceError } from '@svc/contract';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { EventStream } from './event-stream.ts';
import { OutputDecoder } from './output-decoder.ts';
import { runCommand } from './run-command.ts';

/**
 * Runs a command and sends its output as events. The last event is `exit`, or `error` for a failure after the start.
 * Nothing is dropped: a slow reader holds the command back. Never rejects.
 */
export async function streamCommand(
  sandbox: Sandbox,
  request: ExecRequest,
  events: EventStream,
  caller: AbortSignal,
): Promise<void> {
  const text = new OutputDecoder();
  const send = async (stream: 'stdout' | 'stderr', data: string) => {
    if (data !== '') await events.send(stream, { data });
  };
  try {
    const signal = AbortSignal.any([caller, events.stalled]);
    const outcome = await runCommand(
      sandbox,
      request,
      (stream, chunk) => send(stream, text.add(stream, chunk)),
      signal,
    );
    await send('stdout', text.end('stdout'));
    await send('stderr', text.end('stderr'));
    await events.send('exit', { ...outcome, truncated: false });
  } catch (error) {
    const code = isServiceError(error) ? error.code : 'internal_error';
    const message = isServiceError(error) ? error.message : ERRORS.internal_error.detail;
    await events.send('error', { code, message });
  } finally {
    events.end();
  }
}
