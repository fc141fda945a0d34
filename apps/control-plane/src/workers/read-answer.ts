import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { PROBLEM_MEDIA_TYPE } from '@svc/contract';

/** An answer of a worker whose body is still to be read. */
export interface WorkerResponse {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}

/** A worker broke the contract. The message says how, without any value that the worker sent. */
export class BadAnswer extends Error {
  override readonly name = 'BadAnswer';
}

/** The form of an answer: a compiled schema. */
export interface AnswerForm<T> {
  Check(value: unknown): value is T;
  Errors(value: unknown): { readonly instancePath: string; readonly message: string }[];
}

/** The JSON that an operation must answer. */
export interface ExpectedJson<T> {
  readonly status: 200 | 201;
  readonly form: AnswerForm<T>;
  /** Longest body that is read, in bytes. */
  readonly maxBytes: number;
  /** Describes how a response of the right form contradicts the request. */
  readonly problemOf?: (answer: T) => string | undefined;
}

const MAX_PROBLEM_BYTES = 64 * 1024;

/** Reads the answer to a call. @throws BadAnswer when it is not the expected JSON */
export async function readJson<T>(response: WorkerResponse, expected: ExpectedJson<T>): Promise<T> {
  checkHead(response, expected.status, 'application/json');
  const value = await readValue(response, expected.maxBytes);
  if (!expected.form.Check(value)) throw new BadAnswer(mismatch(expected.form, value));
  const problem = expected.problemOf?.(value);
  if (problem !== undefined) throw new BadAnswer(problem);
  return value;
}

/** Reads the body of an error. @throws BadAnswer when it is not problem+json */
export async function readProblem<T>(response: WorkerResponse, form: AnswerForm<T>): Promise<T> {
  checkHead(response, response.statusCode, PROBLEM_MEDIA_TYPE);
  const value = await readValue(response, MAX_PROBLEM_BYTES);
  if (!form.Check(value)) throw new BadAnswer(mismatch(form, value));
  return value;
}

/** Checks status and media type. @throws BadAnswer, without reading the body */
export function checkHead(response: WorkerResponse, status: number, mediaType: string): void {
  checkStatus(response, status);
  const header = response.headers['content-type'];
  const actual = typeof header === 'string' ? header.split(';')[0]?.trim().toLowerCase() : '';
  if (actual !== mediaType) throw discarded(response, `the media type is not ${mediaType}`);
}

/** @throws BadAnswer, without reading the body */
export function checkStatus(response: WorkerResponse, status: number): void {
  const { statusCode } = response;
  if (statusCode !== status) throw discarded(response, `status ${statusCode} instead of ${status}`);
}

function discarded({ body }: WorkerResponse, problem: string): BadAnswer {
  body.on('error', () => undefined);
  body.destroy();
  return new BadAnswer(problem);
}

async function readValue(response: WorkerResponse, maxBytes: number): Promise<unknown> {
  const text = await readText(response, maxBytes);
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new BadAnswer('the body is not JSON');
  }
}

async function readText({ body }: WorkerResponse, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    // Leaving the loop destroys the body.
    if (length > maxBytes) throw new BadAnswer(`the body exceeds ${maxBytes} bytes`);
  }
  return Buffer.concat(chunks, length).toString('utf8');
}

function mismatch<T>(form: AnswerForm<T>, value: unknown): string {
  const [first] = form.Errors(value);
  return `the body has another form: ${first?.instancePath || '/'} ${first?.message}`;
}
