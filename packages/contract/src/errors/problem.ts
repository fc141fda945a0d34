/** The error body: RFC 9457 problem details with the service's extensions. */

import { type Static, Type } from 'typebox';
import { ERRORS, type ErrorCode } from './catalogue.ts';

export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

export const FieldError = Type.Object({
  path: Type.String({ description: 'JSON pointer to the field, or the name of the parameter.' }),
  message: Type.String(),
});
export type FieldError = Static<typeof FieldError>;

export const Problem = Type.Object(
  {
    type: Type.String({ description: 'Stable reference of the problem: `/errors/<code>`.' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'One sentence that says what to do.' }),
    code: Type.String({ description: 'Stable code to match on.' }),
    request_id: Type.String({ description: 'Also in the X-Request-Id header.' }),
    trace_id: Type.Optional(
      Type.String({ description: 'The trace of the request, if the service takes part in it.' }),
    ),
    errors: Type.Optional(Type.Array(FieldError)),
  },
  { title: 'Problem', description: 'RFC 9457 problem details.' },
);
export type Problem = Static<typeof Problem>;

/** Builds the error body for `code`. `detail` defaults to the sentence in the catalogue. */
export function makeProblem(
  code: ErrorCode,
  requestId: string,
  detail?: string,
  errors?: readonly FieldError[],
): Problem {
  const { status, title, detail: standardDetail } = ERRORS[code];
  return {
    type: `/errors/${code}`,
    title,
    status,
    detail: detail ?? standardDetail,
    code,
    request_id: requestId,
    ...(errors === undefined ? {} : { errors: [...errors] }),
  };
}
