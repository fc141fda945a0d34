/** `/v1/tenants`: sign-up and the caller's own account. */

import { type Static, Type } from 'typebox';
import { TenantId } from '../ids.ts';
import { failsWith, Timestamp } from '../schema.ts';
import { tenantKeyFields } from './api-keys.ts';
import { EmailField } from './email.ts';

export const RequestCodeRequest = Type.Object({ email: EmailField });
export type RequestCodeRequest = Static<typeof RequestCodeRequest>;

export const VerifyCodeRequest = Type.Object({
  email: EmailField,
  // Accepts any string: a malformed code is 401, like any wrong code.
  code: Type.String({
    maxLength: 64,
    description: 'The six digits of the mail.',
    ...failsWith('otp_invalid'),
  }),
});
export type VerifyCodeRequest = Static<typeof VerifyCodeRequest>;

export const VerifyTenantResponse = Type.Object(
  {
    tenant_id: TenantId,
    ...tenantKeyFields,
    token: Type.String({ description: 'Short-lived account JWT.' }),
  },
  { title: 'VerifiedTenant' },
);
export type VerifyTenantResponse = Static<typeof VerifyTenantResponse>;

export const TenantRecord = Type.Object(
  {
    tenant_id: TenantId,
    email: Type.String({ format: 'email' }),
    created_at: Timestamp,
    plan: Type.String({ examples: ['free'] }),
  },
  { title: 'Tenant' },
);
export type TenantRecord = Static<typeof TenantRecord>;

const CODE = /^[0-9]{6}$/;

/** Whether a string has the form of a one-time code: six digits. */
export function looksLikeCode(code: string): boolean {
  return CODE.test(code);
}
