import { isIP, type LookupFunction } from 'node:net';
import type { SecureContext } from 'node:tls';
import { buildConnector } from 'undici';
import { EgressError } from './egress-error.ts';
import type { EgressPolicy } from './egress-policy.ts';

const HTTPS_PORT = 443;

export interface ConnectorOptions {
  readonly policy: EgressPolicy;
  /** Time limit from the resolved name to the completed TLS handshake, in milliseconds. */
  readonly connectMs: number;
  /** Undefined: the CAs of Node. */
  readonly trust: SecureContext | undefined;
}

/**
 * Connects only over TLS and only to addresses that the policy allows at that moment. It connects to the very
 * addresses that it has checked, so that a name cannot resolve differently in between.
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

/** A lookup with a fixed result. Node makes no lookup for hosts that are addresses. */
function answering(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_hostname, { all }, callback) => {
    const [first] = found;
    if (first === undefined) callback(new EgressError('has no address'), '');
    else if (all === true) callback(null, found);
    else callback(null, first.address, first.family);
  };
}
