/** The failures of the network layer. The codes are stable, so callers may branch on them. */
export type NetworkErrorCode =
  | 'instances_exhausted'
  | 'slots_exhausted'
  | 'slot_not_found'
  | 'network_setup_failed'
  | 'network_closed'
  | 'dns_listen_failed';

/** A failure of the network layer. The message names the failed step and the remedy, if there is one. */
export class NetworkError extends Error {
  override readonly name = 'NetworkError';
  readonly code: NetworkErrorCode;

  constructor(code: NetworkErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
