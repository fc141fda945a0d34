/** `egress_unresolved` may be temporary; `egress_refused` is final. */
export type EgressErrorCode = 'egress_refused' | 'egress_unresolved';

/** A refused connection. It names no address, so that callers do not learn what a name resolves to. */
export class EgressError extends Error {
  override readonly name = 'EgressError';
  readonly code: EgressErrorCode;
  /** The problem with the URL, phrased to follow its name: `must use https`. */
  readonly problem: string;

  constructor(problem: string, code: EgressErrorCode = 'egress_refused') {
    super(`the address ${problem}`);
    this.problem = problem;
    this.code = code;
  }
}
