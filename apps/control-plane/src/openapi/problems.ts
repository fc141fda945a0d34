import { ERRORS, type ErrorCode, PROBLEM_MEDIA_TYPE, Problem } from '@svc/contract';

/** Codes that any route may answer. */
const EVERYWHERE = ['shutting_down', 'internal_error'] as const satisfies ErrorCode[];
/** Codes of every route that needs a credential, which is looked up in the database. */
const AUTHENTICATED = [
  'unauthorized',
  'too_many_requests',
  'database_unavailable',
] as const satisfies ErrorCode[];

/** Codes of every route that accepts a JSON body. */
export const BODY_PROBLEMS = [
  'invalid_json',
  'validation_failed',
  'payload_too_large',
  'unsupported_media_type',
] as const satisfies ErrorCode[];

interface ProblemResponse {
  readonly description: string;
  readonly content: Readonly<
    Record<typeof PROBLEM_MEDIA_TYPE, { readonly schema: typeof Problem }>
  >;
}

/** Response schemas, one per status, of these codes and of those that any route may answer. */
export function problems(...codes: ErrorCode[]): Record<number, ProblemResponse> {
  const byStatus = Map.groupBy(new Set([...codes, ...EVERYWHERE]), (code) => ERRORS[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [status, problemResponse(group)]),
  );
}

/** As {@link problems}, for a route that needs a credential. */
export function authenticatedProblems(...codes: ErrorCode[]): Record<number, ProblemResponse> {
  return problems(...codes, ...AUTHENTICATED);
}

function problemResponse(codes: readonly ErrorCode[]): ProblemResponse {
  const lines = codes.map((code) => `\`${code}\`: ${ERRORS[code].title}.`);
  return {
    description: lines.join(' '),
    content: { [PROBLEM_MEDIA_TYPE]: { schema: Problem } },
  };
}

/** Response schema of a success that has no body. */
export const NO_CONTENT = { description: 'Done.', type: 'null' } as const;
