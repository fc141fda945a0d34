import { ERRORS, type ErrorCode, PROBLEM_MEDIA_TYPE, Problem } from '@svc/contract';
import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { expect } from 'vitest';
import type { RawAnswer } from './raw-http.ts';

/** Fails unless a value matches a schema of the contract. */
export function expectValid(schema: TSchema, value: unknown): void {
  const errors = Value.Errors(schema, value);
  expect(errors, JSON.stringify(value)).toEqual([]);
}

/** Fails unless an answer is the problem `code` exactly as the contract defines it; returns the problem. */
export function expectProblem(answer: RawAnswer, code: ErrorCode): Problem {
  const text = answer.body.toString('utf8');
  expect(answer.status, text).toBe(ERRORS[code].status);
  expect(answer.headers['content-type']).toBe(PROBLEM_MEDIA_TYPE);
  const problem = answer.json<Problem>();
  expectValid(Problem, problem);
  expect(problem).toMatchObject({
    code,
    status: ERRORS[code].status,
    title: ERRORS[code].title,
    type: `/errors/${code}`,
    request_id: answer.headers['x-request-id'],
  });
  return problem;
}
