import { isIP, type LookupFunction } from 'node:net';
import type { SecureContext } from 'node:tls';
import { buildConnector } from 'undici';
import { EgressError } from './egress-error.ts';
import type { EgressPolicy } from './egress-policy.ts';

const HTTPS_PORT = 443;

export interface ConnectorOptions {
  readonly policy: EgressPolicy;
  /** Until the TLS handshake is done, from when the name is resolved. */
  readonly connectMs: number;
  /** Undefined for the CAs that Node trusts. */
  readonly trust: SecureContext | undefined;
}

/**
 * Connects by TLS alone, and only where the policy allows it at that very moment: the addresses that were checked
 * are the ones that are connected to, so that a name cannot lead elsewhere in between.
 */
export function guardedConnector(options: ConnectorOptions): buildConnector.connector {
  const { policy, connectMs, trust } = options;
  const connectTo = async (target: buildConnector.Options) => {
    if (target.protocol !== 'https:') throw new EgressError('must use https');
    const port = target.port === '' ? HTTPS_PORT : Number(target.port);
    const host = target.hostname.replace(/^\[|\]$/g, '').toLowerCase();
    return buildConnector({
      timeout: connectMs,
      lookup: answering(await policy.addressesOf(host, port)),
      ...(trust === undefined ? {} : { secureContext: trust }),
    });
  };
  return (target, callback) => {
    connectTo(target).then(
      (connect) => connect(target, callback),
      (error: Error) => callback(error, null),
    );
  };
}

/** A lookup that knows the answer. What is an address already is connected to without one. */
function answering(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_hostname, { all }, callback) => {
    const [first] = found;
    if (first === undefined) callback(new EgressError('has no address'), '');
    else if (all === true) callback(null, found);
    else callback(null, first.address, first.family);
  };
}
