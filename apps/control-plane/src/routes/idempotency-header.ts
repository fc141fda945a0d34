import { LIMITS } from '@svc/contract';
import { Type } from 'typebox';

/** Request headers of routes that create a resource. */
export const IdempotencyHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      description: `Repeating a request with its key and body answers as the first one did, for 24 hours. At most ${LIMITS.idempotencyKeyChars} visible ASCII characters.`,
    }),
  ),
});
