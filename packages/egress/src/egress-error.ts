/** A connection that the rules do not allow. Names no address: who asked need not learn what a name resolves to. */
export class EgressError extends Error {
  override readonly name = 'EgressError';
  readonly code = 'egress_refused';
  /** What is wrong with the URL, to be put behind its name: `must use https`. */
  readonly problem: string;

  constructor(problem: string) {
    super(`the address ${problem}`);
    this.problem = problem;
  }
}
