import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino';
import { currentRequest } from '../tracing/request-scope.ts';
import { prettyLine } from './pretty.ts';

export interface LoggerOptions {
  readonly level: string;
  /** Short readable lines instead of JSON. Default: when standard output is a terminal. */
  readonly pretty?: boolean;
  /** The destination. Default: standard output. */
  readonly destination?: DestinationStream;
}

/**
 * Members that are never logged, at the top level and one level below. This is the second line of defence: secrets
 * have a type that never reveals its value.
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

/** The logger of a process. `logger.child({ component })` names the component that logs. */
export function createLogger(options: LoggerOptions): Logger {
  const { level, pretty = process.stdout.isTTY === true, destination = process.stdout } = options;
  return pino(
    {
      level,
      timestamp: stdTimeFunctions.isoTime,
      base: null,
      mixin: requestFields,
      redact: {
        paths: SENSITIVE.flatMap((name) => [name, `*.${name}`]),
        censor: '[redacted]',
      },
    },
    pretty ? { write: (line) => destination.write(prettyLine(line)) } : destination,
  );
}

/** Marks a logger whose lines have the id of a request anyway. */
export const HAS_REQUEST_ID = Symbol('has request id');

/** Which request a line belongs to, whoever writes it. */
function requestFields(_line: object, _level: number, logger: object): object {
  const request = currentRequest();
  if (request === undefined) return {};
  return {
    ...(HAS_REQUEST_ID in logger ? {} : { request_id: request.requestId }),
    ...(request.traceId === undefined ? {} : { trace_id: request.traceId }),
  };
}

export type { Logger } from 'pino';
