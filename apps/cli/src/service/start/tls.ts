import { readFile } from 'node:fs/promises';
import { type Config, listenNames } from '@svc/config';
import type { CertificatePair, ServerCertificate } from '@svc/service-kit/tls';
import { readCa } from '../../connection/ca-file.ts';
import type { ServicePaths } from '../paths.ts';

type TlsConfig = Pick<
  Config,
  | 'tls'
  | 'tlsCertFile'
  | 'tlsKeyFile'
  | 'caFile'
  | 'baseUrl'
  | 'runtimeUrl'
  | 'listen'
  | 'internalListen'
  | 'runtimeListen'
>;

/** The certificate of the control plane and the runtime host, and the CA that their clients must trust. */
export interface ServiceTls {
  /** Undefined for plain HTTP behind a proxy. */
  readonly server: ServerCertificate | undefined;
  /** The CA, if the system does not trust it. */
  readonly caFile: string | undefined;
  readonly ca: string | undefined;
}

/**
 * Reads the configured certificate, or issues one from a local CA in the data directory. With `SVC_TLS=off` there is
 * none.
 * @throws CliError `ca_unreadable`
 */
export async function openTls(
  config: TlsConfig,
  paths: Pick<ServicePaths, 'tls'>,
): Promise<ServiceTls> {
  const { caFile } = config;
  const ca = caFile === undefined ? undefined : await readCa(caFile);
  if (!config.tls) return { server: undefined, caFile, ca };
  const [{ ServerCertificate }, pair] = await Promise.all([
    import('@svc/service-kit/tls'),
    readPair(config, paths),
  ]);
  return { caFile, ca, ...pair.local, server: new ServerCertificate(pair) };
}

/**
 * Replaces the certificate if its files have changed, or the local CA has issued another. Returns whether it did.
 * @throws for one that no server could use
 */
export async function rereadTls(
  { server }: Pick<ServiceTls, 'server'>,
  config: TlsConfig,
  paths: Pick<ServicePaths, 'tls'>,
): Promise<boolean> {
  return server?.replace(await readPair(config, paths)) ?? false;
}

type ReadPair = CertificatePair & {
  /** Of a certificate of the local CA. */
  readonly local?: Pick<ServiceTls, 'caFile' | 'ca'>;
};

async function readPair(config: TlsConfig, paths: Pick<ServicePaths, 'tls'>): Promise<ReadPair> {
  const { tlsCertFile, tlsKeyFile } = config;
  if (tlsCertFile !== undefined && tlsKeyFile !== undefined) {
    const [cert, key] = await Promise.all([
      readFile(tlsCertFile, 'utf8'),
      readFile(tlsKeyFile, 'utf8'),
    ]);
    return { cert, key };
  }
  const { ensureLocalTls } = await import('@svc/service-kit/tls');
  const urls = [config.baseUrl, config.runtimeUrl].filter((url) => url !== undefined);
  const extraNames = [...new Set([...urls.map(hostOf), ...listenNames(config)])];
  const { cert, key, ca, caFile } = await ensureLocalTls({ directory: paths.tls, extraNames });
  return { cert, key, local: { ca, caFile } };
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}
