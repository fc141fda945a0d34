import { SvcError } from '../errors.ts';
import type { SocketEnd } from './socket.ts';

/** Whether a close means that the session has ended, so that a reconnect is pointless. */
export function isOrderlyEnd({ code, reason }: SocketEnd): boolean {
  return code === 1000 || (code === 1001 && reason === 'sandbox destroyed');
}

/** Whether the session's worker was unreachable, either temporarily or because the session has ended. */
export function isWithoutUpstream({ code }: SocketEnd): boolean {
  return code === 1011;
}

/** Whether a refused or failed attempt may succeed later. */
export function mayPass(error: unknown): error is SvcError {
  if (!(error instanceof SvcError)) return false;
  return error.status === 0 || error.status === 429 || error.status >= 500;
}

/** The error for a session that has ended. */
export function sessionEnded(): SvcError {
  return new SvcError({
    code: 'session_ended',
    detail: 'The session has ended; resume it and connect with what that answers.',
  });
}

/** The error for the agent of a sandbox that has ended. */
export function agentEnded(): SvcError {
  return new SvcError({
    code: 'agent_ended',
    detail: 'The agent has exited, or its sandbox has ended; see the record of the sandbox.',
  });
}

/** The error after the last failed reconnect. */
export function gaveUp(tries: number, last: SocketEnd | SvcError): SvcError {
  const isError = last instanceof SvcError;
  const why = isError ? last.detail : `closed with ${last.code} ${last.reason}`.trim();
  return new SvcError({
    code: 'connection_lost',
    detail: `The session could not be reached again in ${tries} tries: ${why}`,
    ...(isError ? { cause: last, status: last.status, requestId: last.requestId } : {}),
  });
}
