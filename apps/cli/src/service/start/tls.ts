import { readFile } from 'node:fs/promises';
import type { Config } from '@svc/config';
import { readCa } from '../../connection/ca-file.ts';
import type { ServicePaths } from '../paths.ts';

/** The certificate of the control plane and the runtime host, and the CA that their clients must trust. */
export interface ServiceTls {
  /** Undefined for plain HTTP behind a proxy. */
  readonly server: { readonly cert: string; readonly key: string } | undefined;
  /** The CA, if the system does not trust it. */
  readonly caFile: string | undefined;
  readonly ca: string | undefined;
}

/**
 * Reads the configured certificate, or issues one from a local CA in the data directory. With `SVC_TLS=off` there is
 * none.
 * @throws CliError `ca_unreadable`
 */
export async function openTls(config: Config, paths: ServicePaths): Promise<ServiceTls> {
  const { tlsCertFile, tlsKeyFile, caFile } = config;
  const ca = caFile === undefined ? undefined : await readCa(caFile);
  if (!config.tls) return { server: undefined, caFile, ca };
  if (tlsCertFile !== undefined && tlsKeyFile !== undefined) {
    const [cert, key] = await Promise.all([
      readFile(tlsCertFile, 'utf8'),
      readFile(tlsKeyFile, 'utf8'),
    ]);
    return { server: { cert, key }, caFile, ca };
  }
  const { ensureLocalTls } = await import('@svc/service-kit/tls');
  const urls = [config.baseUrl, config.runtimeUrl].filter((url) => url !== undefined);
  const extraNames = [...new Set(urls.map(hostOf))];
  const local = await ensureLocalTls({ directory: paths.tls, extraNames });
  return { server: local, caFile: local.caFile, ca: local.ca };
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}
