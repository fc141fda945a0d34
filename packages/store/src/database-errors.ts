import { ServiceError } from '@svc/contract';

/** SQLSTATE classes and codes for a server that cannot serve any statement at present. */
const UNAVAILABLE_CLASSES = ['08', '53', '57', '58'];
const UNAVAILABLE_CODES = ['55P03', '25006', '25P03', '3D000', '28000', '28P01'];
/** A lock was not free in time, or several transactions waited for each other. */
const LOCK_CODES = ['55P03', '40P01'];
const DISK_FULL = '53100';
const NODE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EACCES',
]);
/** Messages of pg's errors that have no code. */
const PG_MESSAGES =
  /connection terminated|timeout exceeded when trying to connect|query read timeout|connection error and is not queryable|client was closed|cannot use a pool after calling end|timeout expired/i;

/** Whether the connection that failed with this error must not be used again. */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  if (code !== undefined && (NODE_CODES.has(code) || unavailable(code))) return true;
  if (error instanceof AggregateError) return error.errors.some(isConnectionError);
  return PG_MESSAGES.test(error.message);
}

/** Whether a statement failed for a lock that others hold, so that it may succeed later. */
export function isLockError(error: unknown): boolean {
  const found = error instanceof ServiceError ? error.cause : error;
  return found instanceof Error && LOCK_CODES.includes(codeOf(found) ?? '');
}

/** Maps failures to reach or use the server to `database_unavailable`. Returns other errors unchanged. */
export function mapDatabaseError(error: unknown): unknown {
  if (error instanceof ServiceError || !isConnectionError(error)) return error;
  const detail =
    error instanceof Error && codeOf(error) === DISK_FULL
      ? 'The database has no space left; try again when the operator has freed some.'
      : undefined;
  return new ServiceError('database_unavailable', detail, { cause: error });
}

function unavailable(code: string): boolean {
  return (
    code.length === 5 &&
    (UNAVAILABLE_CODES.includes(code) || UNAVAILABLE_CLASSES.some((name) => code.startsWith(name)))
  );
}

function codeOf(error: Error): string | undefined {
  const code = (error as { code?: unknown }).code;
  return typeof code === 'string' ? code : undefined;
}
