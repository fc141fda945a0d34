import type { CancelReason } from '@svc/contract';

/** The cooperative cancel message that attached clients and agents receive. */
export function cancelFrame(reason: CancelReason) {
  return { type: 'system', event: 'cancel', reason } as const;
}
