import type { FrameErrorCode } from '@svc/contract';
import type { TurnEnd } from '../vendor-cli/dialogue.ts';
import { AgentFailure, codeOfStatus } from '../vendor-cli/failure.ts';
import { at, isObject, type JsonObject, numberAt, stringAt } from '../vendor-cli/json.ts';

/** Codes for the `codexErrorInfo` of a failed turn, where it is a string. */
const CODES: Readonly<Record<string, FrameErrorCode>> = {
  unauthorized: 'llm_unauthorized',
  usageLimitExceeded: 'llm_rate_limited',
  rateLimitExceeded: 'llm_rate_limited',
  serverOverloaded: 'llm_overloaded',
  flexUnavailable: 'llm_overloaded',
  policyCapacityUnavailable: 'llm_overloaded',
  internalServerError: 'llm_unavailable',
  badRequest: 'llm_refused',
  modelNotFound: 'llm_refused',
  contextWindowExceeded: 'llm_refused',
  cyberPolicy: 'llm_refused',
  misalignmentPolicyViolation: 'llm_refused',
  sessionBudgetExceeded: 'token_limit',
};
const BROKEN_OFF = 'stream disconnected before completion';
const NOT_SENT = 'error sending request';

/** How a turn ended, from the turn in `turn/completed`. */
export function endOf(turn: unknown, result: string): TurnEnd {
  switch (stringAt(turn, 'status')) {
    case 'completed':
      return { status: 'completed', result };
    case 'interrupted':
      return { status: 'interrupted' };
    default:
      return { status: 'failed', failure: failureOf(at(turn, 'error')) };
  }
}

function failureOf(error: unknown): AgentFailure {
  const message = stringAt(error, 'message') ?? '';
  const refusal = refusalIn(message);
  return new AgentFailure(
    codeOf(at(error, 'codexErrorInfo'), message, refusal),
    refusal ?? message,
  );
}

function codeOf(info: unknown, message: string, refusal: string | undefined): FrameErrorCode {
  const code = typeof info === 'string' ? CODES[info] : undefined;
  if (code !== undefined) return code;
  const status = statusIn(info);
  if (status !== undefined) return codeOfStatus(status);
  if (message.startsWith(BROKEN_OFF)) {
    return message.includes(NOT_SENT) ? 'llm_unavailable' : 'llm_bad_response';
  }
  if (isObject(info)) return 'llm_unavailable';
  return refusal === undefined ? 'agent_failed' : 'llm_refused';
}

/** The status in values like `{ httpConnectionFailed: { httpStatusCode } }`. */
function statusIn(info: unknown): number | undefined {
  if (!isObject(info)) return undefined;
  const statuses = Object.values(info).map((variant) => numberAt(variant, 'httpStatusCode'));
  return statuses.find((status) => status !== undefined);
}

/** The vendor's message, where codex repeats the body of a response. */
function refusalIn(message: string): string | undefined {
  const body = parse(message);
  return body === undefined ? undefined : (stringAt(body, 'error', 'message') ?? message);
}

function parse(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
