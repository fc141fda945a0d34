import { SvcError } from '@svc/sdk';

/** A failure of the command line, with a stable code and the next step for the user. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly code: string;
  /** The next step, ideally a command to type. */
  readonly next: string | undefined;
  readonly exitCode: number;

  constructor(
    code: string,
    message: string,
    options: { next?: string; exitCode?: number; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.next = options.next;
    this.exitCode = options.exitCode ?? 1;
  }
}

/** Describes an error in lines for the user: message, next step, code and request id. */
export function describeError(error: unknown): string[] {
  // The cleanup after a failure has failed, too. What went wrong first is what the user can do something about.
  if (error instanceof SuppressedError) return describeError(error.suppressed);
  if (error instanceof SvcError) return describeServiceError(error);
  if (error instanceof CliError) {
    return lines(error.message, { next: error.next, code: error.code });
  }
  if (error instanceof Error && error.name === 'AbortError') return ['svc: interrupted'];
  // Compared by name: importing the class would load the table of settings for every command.
  if (error instanceof Error && error.name === 'ConfigError') {
    const next = 'correct these environment variables; docs/configuration.md describes each';
    return lines(error.message, { next, code: 'invalid_configuration' });
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return lines(message, {
    code: 'unexpected',
    next: 'run `svc doctor`; if it finds no problem, report this error',
  });
}

/** The exit code of the process for an error; 130 if the command was interrupted. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof SuppressedError) return exitCodeOf(error.suppressed);
  if (error instanceof CliError) return error.exitCode;
  return error instanceof Error && error.name === 'AbortError' ? 130 : 1;
}

function describeServiceError(error: SvcError): string[] {
  const fields = error.errors.map((field) => `  ${field.path}: ${field.message}`);
  const [first = '', ...rest] = lines(error.title, {
    next: hintFor(error) ?? error.detail,
    code: error.code,
    request: error.requestId,
  });
  return [first, ...fields, ...rest];
}

function hintFor(error: SvcError): string | undefined {
  switch (error.code) {
    case 'connection_failed':
      return `${error.detail} Is the service running? Try \`svc status\`, or start it with \`svc up\`.`;
    case 'unauthorized':
      return 'Sign in with `svc login`, or set SVC_API_KEY.';
    default:
      return undefined;
  }
}

function lines(message: string, more: Record<string, string | undefined>): string[] {
  const details = Object.entries(more).filter((entry) => entry[1] !== undefined);
  return [
    `svc: ${message}`,
    ...details.map(([name, value]) => `  ${`${name}:`.padEnd(9)}${value}`),
  ];
}
