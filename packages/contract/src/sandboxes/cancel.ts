/** `POST /v1/sandboxes/{id}/cancel`. */

import { type Static, Type } from 'typebox';
import { SandboxId } from '../ids.ts';
import { failsWith, OPTIONAL_BODY_KEYWORD } from '../schema.ts';
import { CANCEL_REASONS } from '../states.ts';

export const CancelRequest = Type.Object(
  {
    reason: Type.Optional(
      Type.Enum([...CANCEL_REASONS], {
        default: 'user_request',
        ...failsWith('unknown_cancel_reason'),
      }),
    ),
  },
  { [OPTIONAL_BODY_KEYWORD]: true },
);
/** Undefined when the request has no body. */
export type CancelRequest = Static<typeof CancelRequest> | undefined;

export const CancelResponse = Type.Object({
  vm_id: SandboxId,
  cancelled: Type.Boolean({ description: 'Whether any attached client received it.' }),
  reason: Type.Enum([...CANCEL_REASONS]),
});
export type CancelResponse = Static<typeof CancelResponse>;
