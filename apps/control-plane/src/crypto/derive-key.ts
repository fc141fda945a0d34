import { hkdfSync } from 'node:crypto';
import type { Secret } from '@svc/service-kit';

/** Derives a key for one purpose from the cluster secret. Every replica derives the same key. */
export function deriveKey(secret: Secret, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret.reveal(), '', purpose, 32));
}
