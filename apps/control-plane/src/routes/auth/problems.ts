import type { ErrorCode } from '@svc/contract';
import { BODY_PROBLEMS } from '../../openapi/problems.ts';

/** Codes of routes that send a one-time code. */
export const CODE_REQUEST_PROBLEMS = [
  ...BODY_PROBLEMS,
  'email_invalid',
  'otp_rate_limited',
  'ip_rate_limited',
  'email_send_failed',
  'database_unavailable',
] as const satisfies ErrorCode[];

/** Codes of routes that redeem a one-time code. */
export const VERIFY_PROBLEMS = [
  ...BODY_PROBLEMS,
  'email_invalid',
  'otp_invalid',
  'ip_rate_limited',
  'database_unavailable',
] as const satisfies ErrorCode[];

/** The same whether or not the account exists. */
export const CODE_ON_ITS_WAY = 'If the address can receive mail, a code is on its way.';
