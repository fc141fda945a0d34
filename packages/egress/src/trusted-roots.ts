import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs;

/**
 * TLS options that trust the CAs of Node and those of a PEM file.
 * @throws Error that names the file when it holds no readable certificate
 */
export function trustRootsAnd(caFile: string): SecureContext {
  return createSecureContext({
    ca: [...getCACertificates('default'), ...readCertificates(caFile)],
  });
}

function readCertificates(file: string): string[] {
  try {
    const certificates = readFileSync(file, 'utf8').match(CERTIFICATE) ?? [];
    if (certificates.length === 0) throw new Error('there is no certificate in it');
    for (const certificate of certificates) new X509Certificate(certificate);
    return certificates;
  } catch (cause) {
    throw new Error(`the CA certificates in ${file} cannot be read`, { cause });
  }
}
