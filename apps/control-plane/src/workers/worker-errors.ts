import { type ErrorCode, isErrorCode, ServiceError } from '@svc/contract';

/** Codes that say something about the two programs, not about what the caller asked for. */
const NOT_FOR_CALLERS: ReadonlySet<ErrorCode> = new Set([
  'unauthorized',
  'worker_not_registered',
  'worker_id_mismatch',
  'route_not_found',
  'method_not_allowed',
  'validation_failed',
  'invalid_json',
  'unsupported_media_type',
  'internal_error',
]);

/** A worker refused the control plane's own credential: the two do not share one cluster secret. */
export class WorkerRefusedCredential extends ServiceError {
  constructor(workerId: string) {
    super('worker_unreachable', undefined, {
      cause: new Error(`Worker ${workerId} refuses the control plane's token.`),
    });
  }
}

/** The error that a worker's answer of 400 or more stands for; its code passes through when callers know it. */
export function errorFromWorker(workerId: string, status: number, body: string): ServiceError {
  if (status === 401) return new WorkerRefusedCredential(workerId);
  const problem = parseProblem(body);
  const cause = new Error(`Worker ${workerId} answered ${status}: ${body.slice(0, 500)}`);
  if (problem === undefined || NOT_FOR_CALLERS.has(problem.code)) {
    return new ServiceError('internal_error', undefined, { cause });
  }
  if (problem.code === 'shutting_down')
    return new ServiceError('worker_unreachable', undefined, { cause });
  return new ServiceError(problem.code, problem.detail, { cause });
}

/** A worker that could not be reached, or fell silent before its answer was complete. */
export function unreachableError(workerId: string, cause: unknown): ServiceError {
  return new ServiceError('worker_unreachable', undefined, {
    cause: new Error(`Worker ${workerId} does not answer.`, { cause }),
    headers: { 'retry-after': '5' },
  });
}

function parseProblem(body: string): { code: ErrorCode; detail: string | undefined } | undefined {
  try {
    const { code, detail }: { code?: unknown; detail?: unknown } = JSON.parse(body);
    if (!isErrorCode(code)) return undefined;
    return { code, detail: typeof detail === 'string' ? detail : undefined };
  } catch {
    return undefined;
  }
}
