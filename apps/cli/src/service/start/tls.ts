import { readFile } from 'node:fs/promises';
import type { Config } from '@svc/config';
import { readCa } from '../../connection/ca-file.ts';
import type { ServicePlaces } from '../places.ts';

/** What control plane and runtime host serve with, and what their clients are to trust. */
export interface ServiceTls {
  /** None: plain HTTP, behind a proxy. */
  readonly server: { readonly cert: string; readonly key: string } | undefined;
  /** The certificate authority, where the system does not know it. */
  readonly caFile: string | undefined;
  readonly ca: string | undefined;
}

/** The configured certificate, else one of a local CA made in the data directory, else none. */
export async function openTls(config: Config, places: ServicePlaces): Promise<ServiceTls> {
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
  const local = await ensureLocalTls({ directory: places.tls, extraNames });
  return { server: local, caFile: local.caFile, ca: local.ca };
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}
