import { readFileSync } from 'node:fs';
import { SvcClient, type SvcClientOptions } from '@svc/sdk';
import type { ServiceAddress } from '@svc/service-driver';
import { type RawAnswer, type RawRequest, sendRaw } from './raw-http.ts';
import { type Account, signUp } from './sign-up.ts';

/** A customer's access to a service: the SDK, sign-up by mail, and raw HTTPS requests that the SDK would refuse to send. */
export class Access {
  readonly address: ServiceAddress;
  readonly ca: string;

  constructor(address: ServiceAddress) {
    this.address = address;
    this.ca = readFileSync(address.caFile, 'utf8');
  }

  /** Creates an SDK client. It neither retries nor waits for a 429 unless `options` says otherwise. */
  client(apiKey?: string, options: Partial<SvcClientOptions> = {}): SvcClient {
    return new SvcClient({
      baseUrl: this.address.baseUrl,
      ca: this.ca,
      maxRetries: 0,
      maxWaitMs: 0,
      ...(apiKey === undefined ? {} : { apiKey }),
      ...options,
    });
  }

  /** Creates an account as a customer does: one-time code by mail, then verification. */
  async signUp(email?: string): Promise<Account> {
    return signUp(this.address.dataDir, (apiKey) => this.client(apiKey), email);
  }

  /** Sends a request unchanged and reads the whole answer. */
  async raw(request: RawRequest): Promise<RawAnswer> {
    return sendRaw({ baseUrl: this.address.baseUrl, ca: this.ca }, request);
  }
}
