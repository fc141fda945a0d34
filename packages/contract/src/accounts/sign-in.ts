/** `/v1/auth`: sign-in for the older onboarding path. Its requests are the same as those of `/v1/tenants`. */

import { type Static, Type } from 'typebox';
import { TenantId } from '../ids.ts';

export const VerifyOtpResponse = Type.Object(
  {
    token: Type.String({ description: 'Short-lived account JWT.' }),
    user_id: TenantId,
    email: Type.String({ format: 'email' }),
  },
  { title: 'SignedIn' },
);
export type VerifyOtpResponse = Static<typeof VerifyOtpResponse>;
