/** Creates X.509 certificates: P-256 keys, ECDSA with SHA-256. */

// Must come before x509, whose dependency injection needs it.
import 'reflect-metadata';
import { KeyObject, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';

/** A certificate and its private key, both PEM. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateRequest {
  readonly commonName: string;
  /** Host names and IP addresses of the certificate. */
  readonly names: readonly string[];
  readonly days: number;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 86_400_000;
/** The clocks of other machines may be slow. */
const BACKDATE_MS = 5 * 60_000;

/** A certificate authority that signs only end certificates. */
export async function createCa(commonName: string, days: number): Promise<CertificatePair> {
  const keys = await generateKeys();
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    name: nameOf(commonName),
    keys,
    signingAlgorithm: ALGORITHM,
    ...validity(days),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
        true,
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return pairOf(cert, keys);
}

/** A server certificate signed by `ca`. */
export async function issueCertificate(
  ca: CertificatePair,
  request: CertificateRequest,
): Promise<CertificatePair> {
  const authority = new x509.X509Certificate(ca.cert);
  const signingKey = await importKey(ca.key);
  const keys = await generateKeys();
  const cert = await x509.X509CertificateGenerator.create({
    subject: nameOf(request.commonName),
    issuer: authority.subject,
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: ALGORITHM,
    ...validity(request.days),
    extensions: [
      ...serverExtensions(request.names),
      await x509.AuthorityKeyIdentifierExtension.create(authority),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return pairOf(cert, keys);
}

/** A self-signed server certificate, for clients that pin it. */
export async function createSelfSigned(request: CertificateRequest): Promise<CertificatePair> {
  const keys = await generateKeys();
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    name: nameOf(request.commonName),
    keys,
    signingAlgorithm: ALGORITHM,
    ...validity(request.days),
    extensions: serverExtensions(request.names),
  });
  return pairOf(cert, keys);
}

function serverExtensions(names: readonly string[]): x509.Extension[] {
  return [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
    new x509.SubjectAlternativeNameExtension(
      names.map((name) => ({ type: isIP(name) === 0 ? 'dns' : 'ip', value: name })),
    ),
  ];
}

function nameOf(commonName: string): x509.JsonName {
  return [{ CN: [commonName] }];
}

function validity(days: number): { notBefore: Date; notAfter: Date } {
  const now = Date.now();
  return { notBefore: new Date(now - BACKDATE_MS), notAfter: new Date(now + days * DAY_MS) };
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = x509.PemConverter.decodeFirst(pem);
  return webcrypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
}

function pairOf(cert: x509.X509Certificate, keys: webcrypto.CryptoKeyPair): CertificatePair {
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' });
  return { cert: `${cert.toString('pem')}\n`, key: key.toString() };
}
