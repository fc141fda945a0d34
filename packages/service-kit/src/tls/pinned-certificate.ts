import { X509Certificate } from 'node:crypto';
import type { ConnectionOptions } from 'node:tls';

/**
 * TLS options of a client that trusts exactly one certificate (PEM), whatever host name it connects to: for
 * peers that registered a self-signed certificate.
 */
export function pinCertificate(
  certificate: string,
): Required<Pick<ConnectionOptions, 'ca' | 'checkServerIdentity'>> {
  const pinned = new X509Certificate(certificate).fingerprint256;
  return {
    ca: certificate,
    checkServerIdentity: (_host, presented) =>
      presented.fingerprint256 === pinned
        ? undefined
        : new Error('The server presents another certificate than it registered.'),
  };
}
