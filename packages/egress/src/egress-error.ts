/** `egress_unresolved` may be better a moment later; `egress_refused` will not. */
export type EgressErrorCode = 'egress_refused' | 'egress_unresolved';

/** A connection that cannot be allowed. Names no address: who asked need not learn what a name resolves to. */
export class EgressError extends Error {
  override readonly name = 'EgressError';
  readonly code: EgressErrorCode;
  /** What is wrong with the URL, to be put behind its name: `must use https`. */
  readonly problem: string;

  constructor(problem: string, code: EgressErrorCode = 'egress_refused') {
    super(`the address ${problem}`);
    this.problem = problem;
    this.code = code;
  }
}
