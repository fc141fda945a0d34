import type { Instance } from '../instance/instance.ts';
import type { NetworkPolicy } from '../network-options.ts';

export interface DnsForwarderOptions {
  readonly instance: Instance;
  readonly policy: NetworkPolicy;
  readonly upstreams?: () => readonly string[];
}

/** Placeholder until forwarding lands in the next commit. */
export class DnsForwarder {
  static async open(_options: DnsForwarderOptions): Promise<DnsForwarder> {
    return new DnsForwarder();
  }
  async close(): Promise<void> {}
}
