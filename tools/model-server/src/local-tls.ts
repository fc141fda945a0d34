import { ensureLocalTls, type LocalTls } from '@svc/service-kit/tls';

export type { LocalTls };

/** A CA and a certificate for some names and addresses. The first call creates them in the directory. */
export function localTls(directory: string, names: readonly string[]): Promise<LocalTls> {
  return ensureLocalTls({ directory, extraNames: names });
}
