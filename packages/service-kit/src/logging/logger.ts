import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino';
import { prettyLine } from './pretty.ts';

export interface LoggerOptions {
  readonly level: string;
  /** Short lines for a person instead of JSON. Default: when standard output is a terminal. */
  readonly pretty?: boolean;
  /** Where lines go. Default: standard output. */
  readonly destination?: DestinationStream;
}

/**
 * Members that never reach a log, one level down as well.
 * The second line of defence: secrets are of a type that shows nothing of itself.
 */
const SENSITIVE = [
  'api_key',
  'apiKey',
  'authorization',
  'cookie',
  'env',
  'env_vars',
  'key',
  'llm_key',
  'password',
  'persistence_auth_header',
  'secret',
  'token',
  'values',
];

/** The logger of a process. `logger.child({ component })` names the piece that speaks. */
export function createLogger(options: LoggerOptions): Logger {
  const { level, pretty = process.stdout.isTTY === true, destination = process.stdout } = options;
  return pino(
    {
      level,
      timestamp: stdTimeFunctions.isoTime,
      base: null,
      redact: {
        paths: SENSITIVE.flatMap((name) => [name, `*.${name}`]),
        censor: '[redacted]',
      },
    },
    pretty ? { write: (line) => destination.write(prettyLine(line)) } : destination,
  );
}

export type { Logger } from 'pino';
