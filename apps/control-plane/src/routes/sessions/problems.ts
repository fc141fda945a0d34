import type { ErrorCode } from '@svc/contract';

/** Codes of routes that start or resume a session. */
export const START_PROBLEMS = [
  'agent_version_unavailable',
  'tool_not_available',
  'llm_model_invalid',
  'model_not_allowed',
  'llm_base_url_refused',
  'llm_api_key_missing',
  'secret_key_collision',
  'secrets_too_large',
  'credits_exhausted',
  'no_capacity',
  'sandbox_deleted',
  'sandbox_limit_reached',
  'boot_failed',
  'template_not_available',
  'guest_unresponsive',
  'no_workers',
  'worker_unreachable',
  'worker_bad_response',
] as const satisfies ErrorCode[];
