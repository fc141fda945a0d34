import type { FrameErrorCode } from '@svc/contract';
import type { TurnEnd } from '../vendor-cli/dialogue.ts';
import { AgentFailure, codeOfStatus } from '../vendor-cli/failure.ts';
import { at, isObject, type JsonObject, numberAt, stringAt } from '../vendor-cli/json.ts';

/** `codexErrorInfo` of a turn that failed, where it is a word. */
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

/** How a turn ended by the turn that `turn/completed` tells. */
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
  const told = stringAt(error, 'message') ?? '';
  const refusal = refusalIn(told);
  return new AgentFailure(codeOf(at(error, 'codexErrorInfo'), told, refusal), refusal ?? told);
}

function codeOf(info: unknown, told: string, refusal: string | undefined): FrameErrorCode {
  const code = typeof info === 'string' ? CODES[info] : undefined;
  if (code !== undefined) return code;
  const status = statusIn(info);
  if (status !== undefined) return codeOfStatus(status);
  if (told.startsWith(BROKEN_OFF)) {
    return told.includes(NOT_SENT) ? 'llm_unavailable' : 'llm_bad_response';
  }
  if (isObject(info)) return 'llm_unavailable';
  return refusal === undefined ? 'agent_failed' : 'llm_refused';
}

/** `{ httpConnectionFailed: { httpStatusCode } }` and the like. */
function statusIn(info: unknown): number | undefined {
  if (!isObject(info)) return undefined;
  const statuses = Object.values(info).map((variant) => numberAt(variant, 'httpStatusCode'));
  return statuses.find((status) => status !== undefined);
}

/** The words of the vendor where codex repeats the body of an answer. */
function refusalIn(told: string): string | undefined {
  const body = parse(told);
  return body === undefined ? undefined : (stringAt(body, 'error', 'message') ?? told);
}

function parse(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
