import { X509Certificate } from 'node:crypto';
import { Gauge, type Registry } from 'prom-client';
import type { CertificatePair } from '../tls/certificate.ts';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs;

/** Reports when the certificate chain of a server, which may be replaced, expires: when its first certificate does. */
export function registerCertificateMetrics(
  registry: Registry,
  server: string,
  tls: Pick<CertificatePair, 'cert'>,
): void {
  new Gauge({
    name: `svc_${server}_certificate_expiry_timestamp_seconds`,
    help: 'When the certificate chain of this server expires.',
    registers: [registry],
    collect() {
      this.set(expiryOf(tls.cert) / 1000);
    },
  });
}

function expiryOf(chain: string): number {
  const expiries = [...chain.matchAll(CERTIFICATE)].map(([pem]) =>
    new X509Certificate(pem).validToDate.getTime(),
  );
  return Math.min(...expiries);
}
