/** The certificates of a service without configured ones: a local CA in the data directory and one server certificate. */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { writeFileAtomic } from '../process/atomic-write.ts';
import { type CertificatePair, createCa, issueCertificate } from './certificate.ts';

export interface LocalTls extends CertificatePair {
  /** The CA's certificate, PEM. */
  readonly ca: string;
  /** The CA file for clients to trust. */
  readonly caFile: string;
}

export interface LocalTlsOptions {
  /** Created if absent, with mode 0700. */
  readonly directory: string;
  /** Host names and addresses in addition to those of this machine. */
  readonly extraNames?: readonly string[];
}

const CA_DAYS = 3650;
const SERVER_DAYS = 397;
/** Certificates with less remaining validity are renewed. */
const RENEW_MS = 30 * 86_400_000;

/** The names and addresses of this machine. */
export function localNames(): string[] {
  return ['localhost', '127.0.0.1', '::1', hostname()];
}

/**
 * The local CA and a server certificate signed by it, created at the first call and kept. The server certificate is
 * renewed when it is about to expire, lacks a name, or was signed by another CA.
 */
export async function ensureLocalTls(options: LocalTlsOptions): Promise<LocalTls> {
  const { directory, extraNames = [] } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const names = [...new Set([...localNames(), ...extraNames])];
  const ca = await ensurePair(directory, 'ca', isFresh, () => createCa('svc local CA', CA_DAYS));
  const server = await ensurePair(
    directory,
    'server',
    (cert) => isFresh(cert) && isIssuedBy(cert, ca.cert) && covers(cert, names),
    () => issueCertificate(ca, { commonName: 'svc', names, days: SERVER_DAYS }),
  );
  return { ...server, ca: ca.cert, caFile: fileOf(directory, 'ca') };
}

/** Reads `<name>.pem` and `<name>-key.pem`, and creates them when they are missing, damaged or not acceptable. */
async function ensurePair(
  directory: string,
  name: string,
  isAcceptable: (cert: X509Certificate) => boolean,
  make: () => Promise<CertificatePair>,
): Promise<CertificatePair> {
  const present = await readPair(directory, name);
  if (present !== undefined && isUsable(present, isAcceptable)) return present;
  const made = await make();
  // The key first: a crash in between leaves a mismatched pair, which is replaced.
  await writeFileAtomic(join(directory, `${name}-key.pem`), made.key, { mode: 0o600 });
  await writeFileAtomic(fileOf(directory, name), made.cert, { mode: 0o644 });
  return made;
}

async function readPair(directory: string, name: string): Promise<CertificatePair | undefined> {
  try {
    const [cert, key] = await Promise.all([
      readFile(fileOf(directory, name), 'utf8'),
      readFile(join(directory, `${name}-key.pem`), 'utf8'),
    ]);
    return { cert, key };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function isUsable(pair: CertificatePair, accept: (cert: X509Certificate) => boolean): boolean {
  try {
    const cert = new X509Certificate(pair.cert);
    return cert.checkPrivateKey(createPrivateKey(pair.key)) && accept(cert);
  } catch {
    // Not PEM: treated as absent.
    return false;
  }
}

function isFresh(cert: X509Certificate): boolean {
  return cert.validToDate.getTime() - Date.now() > RENEW_MS;
}

function isIssuedBy(cert: X509Certificate, caPem: string): boolean {
  const ca = new X509Certificate(caPem);
  return cert.checkIssued(ca) && cert.verify(ca.publicKey);
}

function covers(cert: X509Certificate, names: readonly string[]): boolean {
  return names.every(
    (name) => (isIP(name) === 0 ? cert.checkHost(name) : cert.checkIP(name)) !== undefined,
  );
}

function fileOf(directory: string, name: string): string {
  return join(directory, `${name}.pem`);
}
