import { readFileSync } from 'node:fs';
import { SvcClient, type SvcClientOptions } from '@svc/sdk';
import { type Account, signUp } from './accounts.ts';
import { type RawAnswer, type RawRequest, sendRaw } from './raw-http.ts';
import type { ServiceAddress } from './service-address.ts';

/** A customer's way to a service: the SDK, sign-up by mail, and bytes over TLS for what the SDK would not send. */
export class Access {
  readonly address: ServiceAddress;
  readonly ca: string;

  constructor(address: ServiceAddress) {
    this.address = address;
    this.ca = readFileSync(address.caFile, 'utf8');
  }

  /** A client of the SDK. Failures come back at once unless `options` asks for retries. */
  client(apiKey?: string, options: Partial<SvcClientOptions> = {}): SvcClient {
    return new SvcClient({
      baseUrl: this.address.baseUrl,
      ca: this.ca,
      maxRetries: 0,
      ...(apiKey === undefined ? {} : { apiKey }),
      ...options,
    });
  }

  /** A new account, made as a customer makes one: code by mail, then verification. */
  async signUp(email?: string): Promise<Account> {
    return signUp(this, email);
  }

  /** Sends a request as it is given and reads the whole answer. */
  async raw(request: RawRequest): Promise<RawAnswer> {
    return sendRaw(this, request);
  }
}
