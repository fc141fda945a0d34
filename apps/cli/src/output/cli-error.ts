/** A failure that a person reads: what happened, what to do next, and a stable code. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly code: string;
  /** The next step, ideally a command to type. */
  readonly next: string | undefined;
  readonly exitCode: number;

  constructor(
    code: string,
    what: string,
    options: { next?: string; exitCode?: number; cause?: unknown } = {},
  ) {
    super(what, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.next = options.next;
    this.exitCode = options.exitCode ?? 1;
  }
}
