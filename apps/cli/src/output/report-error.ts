import { SvcError } from '@svc/sdk';
import { CliError } from './cli-error.ts';

/** The lines that tell a person about a failure: what, next step, code, request id. */
export function describeError(error: unknown): string[] {
  if (error instanceof SvcError) return describeServiceError(error);
  if (error instanceof CliError) {
    return lines(error.message, { next: error.next, code: error.code });
  }
  if (error instanceof Error && error.name === 'AbortError') return ['svc: interrupted'];
  // By its name: the table of settings is too much to load for every command.
  if (error instanceof Error && error.name === 'ConfigError') {
    const next = 'correct the settings in the environment; docs/configuration.md explains each';
    return lines(error.message, { next, code: 'invalid_configuration' });
  }
  const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return lines(what, {
    code: 'unexpected',
    next: 'run `svc doctor`; if it finds nothing, report this',
  });
}

/** The process's exit code for a failure. */
export function exitCodeOf(error: unknown): number {
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

function lines(what: string, more: Record<string, string | undefined>): string[] {
  const details = Object.entries(more).filter((entry) => entry[1] !== undefined);
  return [`svc: ${what}`, ...details.map(([name, value]) => `  ${`${name}:`.padEnd(9)}${value}`)];
}
