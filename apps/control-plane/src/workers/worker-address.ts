import { X509Certificate } from 'node:crypto';
import type { RegisterWorkerRequest } from '@svc/contract';
import type { WorkerRow } from '@svc/store';
import { rejectField } from '../reject-field.ts';

/** The URL of a worker, and the certificate that proves its identity there. */
export type WorkerAddress = Pick<WorkerRow, 'worker_id' | 'url' | 'certificate'>;

/** Checks the address that a worker registers. @throws ServiceError `validation_failed` */
export function checkWorkerAddress({
  url,
  certificate,
}: Pick<RegisterWorkerRequest, 'url' | 'certificate'>): void {
  if (!isHttpsOrigin(url)) rejectField('validation_failed', '/url', 'must be an https origin');
  if (!isCertificate(certificate)) {
    rejectField('validation_failed', '/certificate', 'must be a PEM certificate');
  }
}

function isHttpsOrigin(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === 'https:' && url.href === `${url.origin}/`;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).fingerprint256 !== '';
  } catch {
    return false;
  }
}
