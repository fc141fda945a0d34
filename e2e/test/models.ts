import { type LocalTls, localTls } from '@svc/model-server';
import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** Directory with the TLS certificates of the run's scripted models. */
    readonly modelTlsDirectory: string;
  }
}

/** Address of this machine on which scripted models listen. Only services under test may call it. */
export const MODEL_HOST = '127.0.0.77';

/** Certificate, key and CA of the scripted models. */
export async function modelTls(directory = inject('modelTlsDirectory')): Promise<LocalTls> {
  return localTls(directory, [MODEL_HOST]);
}

/** Settings that let a service call the scripted models, but no other address that is not public. */
export async function modelEnvironment(directory?: string): Promise<Record<string, string>> {
  const { caFile } = await modelTls(directory);
  return { SVC_EGRESS_ALLOW_HOSTS: MODEL_HOST, SVC_EGRESS_CA_FILE: caFile };
}
