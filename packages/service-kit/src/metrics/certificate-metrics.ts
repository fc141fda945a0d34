import { X509Certificate } from 'node:crypto';
import { Gauge, type Registry } from 'prom-client';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs;

/** Reports when the certificate chain (PEM) of a server expires: when its first certificate does. */
export function registerCertificateMetrics(
  registry: Registry,
  server: string,
  chain: string,
): void {
  const expiries = [...chain.matchAll(CERTIFICATE)].map(([pem]) =>
    new X509Certificate(pem).validToDate.getTime(),
  );
  new Gauge({
    name: `svc_${server}_certificate_expiry_timestamp_seconds`,
    help: 'When the certificate chain of this server expires.',
    registers: [registry],
  }).set(Math.min(...expiries) / 1000);
}
