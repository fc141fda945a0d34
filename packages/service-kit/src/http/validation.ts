/** Request validation: no coercion, unknown fields are ignored, failures are {@link ServiceError}s. */

import { AjvCompiler } from '@fastify/ajv-compiler';
import {
  ERROR_CODE_KEYWORD,
  type FieldError,
  MAX_BYTES_KEYWORD,
  OPTIONAL_BODY_KEYWORD,
  ServiceError,
} from '@svc/contract';
import { convertQuery } from './query.ts';
import { errorCodeAt } from './schema-path.ts';

/** The used part of an Ajv error. */
interface Violation {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Record<string, unknown>;
  readonly message?: string | undefined;
}

interface SchemaOfRoute {
  readonly schema: unknown;
  readonly httpPart?: string | undefined;
}

type Verdict = { readonly value: unknown } | { readonly error: ServiceError };

/** A problem lists at most this many fields. */
const MAX_FIELD_ERRORS = 20;

const compile = AjvCompiler()(
  {},
  {
    customOptions: {
      coerceTypes: false,
      removeAdditional: false,
      useDefaults: false,
      // All problems at once: both bodies and reports are bounded.
      allErrors: true,
      strict: false,
      keywords: [
        ERROR_CODE_KEYWORD,
        OPTIONAL_BODY_KEYWORD,
        {
          keyword: MAX_BYTES_KEYWORD,
          type: 'string',
          validate: (most: number, text: string) => Buffer.byteLength(text) <= most,
        },
      ],
    },
  },
);

/** Fastify's validator compiler. */
export function compileValidator({ schema, httpPart }: SchemaOfRoute): (value: unknown) => Verdict {
  const check = compile({ schema } as Parameters<typeof compile>[0]);
  const mayBeAbsent = httpPart === 'body' && isOptionalBody(schema);
  return (value) => {
    // Fastify passes an absent body as null.
    if (mayBeAbsent && (value === null || value === undefined)) return { value: undefined };
    const candidate = httpPart === 'querystring' ? convertQuery(schema, value) : value;
    if (check(candidate) === true) return { value: candidate };
    return { error: validationError(schema, (check.errors ?? []) as Violation[]) };
  };
}

function isOptionalBody(schema: unknown): boolean {
  return (
    typeof schema === 'object' &&
    schema !== null &&
    (schema as Record<string, unknown>)[OPTIONAL_BODY_KEYWORD] === true
  );
}

function validationError(schema: unknown, violations: readonly Violation[]): ServiceError {
  const first = violations[0];
  const code = first === undefined ? undefined : errorCodeAt(schema, placeOf(first));
  const errors = violations.slice(0, MAX_FIELD_ERRORS).map(fieldError);
  return new ServiceError(code ?? 'validation_failed', undefined, { errors });
}

function fieldError(violation: Violation): FieldError {
  return { path: placeOf(violation), message: messageOf(violation) };
}

/** JSON pointer to the invalid value, or to the place of a missing one. */
function placeOf({ keyword, instancePath, params }: Violation): string {
  return keyword === 'required'
    ? `${instancePath}/${String(params.missingProperty)}`
    : instancePath;
}

function messageOf({ keyword, params, message }: Violation): string {
  if (keyword === 'required') return 'is required';
  if (keyword === 'enum' && Array.isArray(params.allowedValues)) {
    return `must be one of ${params.allowedValues.join(', ')}`;
  }
  if (keyword === MAX_BYTES_KEYWORD) return 'has too many bytes in UTF-8';
  return message ?? 'is invalid';
}
