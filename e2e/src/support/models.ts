import { type LocalTls, localTls } from '@svc/model-server';
import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** Directory with the certificates of the run's scripted models. */
    readonly modelTlsDirectory: string;
  }
}

/** Where scripted models listen: an address of this machine that only a service under test may call. */
export const MODEL_HOST = '127.0.0.77';

/** Certificate, key and CA of the scripted models. */
export async function modelTls(directory = inject('modelTlsDirectory')): Promise<LocalTls> {
  return localTls(directory, [MODEL_HOST]);
}

/** Variables with which a service calls the scripted models, and nothing else that is not public. */
export async function modelEnvironment(directory?: string): Promise<Record<string, string>> {
  const { caFile } = await modelTls(directory);
  return { SVC_EGRESS_ALLOW_HOSTS: MODEL_HOST, SVC_EGRESS_CA_FILE: caFile };
}
