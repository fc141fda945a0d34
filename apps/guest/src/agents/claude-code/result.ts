import type { TurnEnd } from '../vendor-cli/dialogue.ts';
import { AgentFailure, codeOfStatus } from '../vendor-cli/failure.ts';
import { type JsonObject, numberAt, stringAt } from '../vendor-cli/json.ts';

/** How a turn ended, from its `result` message. */
export function endOf(result: JsonObject): TurnEnd {
  const text = stringAt(result, 'result') ?? '';
  if (result.is_error !== true) return { status: 'completed', result: text };
  const reason = stringAt(result, 'terminal_reason') ?? '';
  if (reason.startsWith('aborted')) return { status: 'interrupted' };
  return { status: 'failed', failure: failureOf(result, reason, text) };
}

function failureOf(result: JsonObject, reason: string, text: string): AgentFailure {
  if (result.subtype === 'error_max_turns') return new AgentFailure('turn_limit');
  if (result.subtype === 'error_max_budget_usd') return new AgentFailure('token_limit');
  const status = numberAt(result, 'api_error_status');
  if (status !== undefined) return new AgentFailure(codeOfStatus(status), text);
  if (stringAt(result, 'api_error') !== undefined) return new AgentFailure('llm_unavailable', text);
  // An unreadable response with a successful status.
  if (reason === 'api_error') return new AgentFailure('llm_bad_response', text);
  const errors = Array.isArray(result.errors) ? result.errors.join('\n') : '';
  return new AgentFailure('agent_failed', text || errors);
}
