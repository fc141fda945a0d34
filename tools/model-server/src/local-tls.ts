import { ensureLocalTls, type LocalTls } from '@svc/service-kit/tls';

export type { LocalTls };

/** A CA and a certificate for these names and addresses, made in the directory at the first call and kept there. */
export function localTls(directory: string, names: readonly string[]): Promise<LocalTls> {
  return ensureLocalTls({ directory, extraNames: names });
}
