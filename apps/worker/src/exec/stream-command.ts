import { ERRORS, type ExecRequest, isServiceError } from '@svc/contract';
import type { ByteRates } from '../rates/byte-rates.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { EventStream } from './event-stream.ts';
import { OutputDecoder } from './output-decoder.ts';
import { runCommand } from './run-command.ts';

export interface CommandOutput {
  readonly events: EventStream;
  readonly rates: Pick<ByteRates, 'ready' | 'spend'>;
}

/**
 * Runs a command and sends its output as events. The last event is `exit`, or `error` for a failure after the start.
 * Nothing is dropped: a slow reader holds the command back, and so does the rate of its tenant. Never rejects.
 */
export async function streamCommand(
  sandbox: Sandbox,
  request: ExecRequest,
  { events, rates }: CommandOutput,
  caller: AbortSignal,
): Promise<void> {
  const { tenant_id: tenantId } = sandbox.assignment;
  const text = new OutputDecoder();
  const send = async (stream: 'stdout' | 'stderr', data: string) => {
    if (data !== '') rates.spend(tenantId, await events.send(stream, { data }));
  };
  try {
    const signal = AbortSignal.any([caller, events.stalled]);
    const outcome = await runCommand(
      sandbox,
      request,
      async (stream, chunk, wanted) => {
        await rates.ready(tenantId, wanted);
        await send(stream, text.add(stream, chunk));
      },
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
