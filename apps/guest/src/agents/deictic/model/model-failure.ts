import { FRAME_ERRORS, type FrameErrorCode } from '@svc/contract';
import {
  AISDKError,
  APICallError,
  EmptyResponseBodyError,
  InvalidResponseDataError,
  JSONParseError,
  NoOutputGeneratedError,
  StreamProviderError,
  TypeValidationError,
} from 'ai';
import { TransportError } from './transport.ts';

export interface FailureTraits {
  /** A retry may succeed. */
  readonly transient?: boolean;
  /** The wait requested by the endpoint. */
  readonly retryAfterMs?: number | undefined;
  /** The conversation exceeds the model's context window. */
  readonly overflow?: boolean;
  /** The conversation itself is refused: every later request with the same messages would be refused too. */
  readonly conversationRefused?: boolean;
}

/** A failed model call. The message is for the client. */
export class ModelFailure extends Error {
  override readonly name = 'ModelFailure';
  readonly code: FrameErrorCode;
  readonly traits: FailureTraits;

  constructor(code: FrameErrorCode, detail?: string, traits: FailureTraits = {}) {
    super(detail ? `${FRAME_ERRORS[code]} ${oneLine(detail)}` : FRAME_ERRORS[code]);
    this.code = code;
    this.traits = traits;
  }
}

const MAX_DETAIL_CHARS = 500;
const MAX_CAUSES = 5;

/** Phrases by which vendors report a conversation that is too long. */
const OVERFLOW =
  /prompt is too long|context.?(length|window|limit)|maximum (context|prompt)|too many (input )?tokens|input token count|exceeds? the (maximum|limit).{0,40}tokens|reduce the length|request.too.large|input is too long/i;

/** Statuses of requests that are refused for what they contain. */
const CONTENT_STATUSES: readonly number[] = [400, 413, 422];
/** Phrases by which vendors refuse the account, its key or the model with one of these statuses. */
const NOT_THE_CONTENT =
  /credit balance|insufficient.(balance|credit|fund|quota)|billing|api usage limit|api key (not valid|expired)|model not (exist|found)|model .{1,100} (does not exist|not found)|not a valid model|decommissioned|no longer (available|supported)/i;

const UNREADABLE = [
  EmptyResponseBodyError,
  InvalidResponseDataError,
  JSONParseError,
  NoOutputGeneratedError,
  TypeValidationError,
];

/** Converts an error of the SDK during a call. */
export function describeFailure(error: unknown): ModelFailure {
  if (error instanceof ModelFailure) return error;
  const chain = causesOf(error);
  const transport = chain.find((cause) => cause instanceof TransportError);
  if (transport !== undefined) return describeTransport(transport);
  if (APICallError.isInstance(error)) return describeAnswer(error);
  if (StreamProviderError.isInstance(error)) {
    const status = error.type === 'overloaded_error' ? 529 : error.statusCode;
    if (status !== undefined) return describeStatus(status, error.message, error.message);
    return new ModelFailure('llm_bad_response', error.message, {
      overflow: OVERFLOW.test(error.message),
    });
  }
  if (UNREADABLE.some((kind) => kind.isInstance(error))) {
    return new ModelFailure('llm_bad_response');
  }
  // The SDK refused to send the request; other errors come from reading the answer.
  if (AISDKError.isInstance(error)) return new ModelFailure('agent_failed', error.message);
  return new ModelFailure('llm_bad_response');
}

function describeTransport(error: TransportError): ModelFailure {
  switch (error.problem) {
    case 'unreachable':
      return new ModelFailure('llm_unavailable', error.message, { transient: true });
    case 'silent':
      // Not retried: the user has waited long enough.
      return new ModelFailure('llm_unavailable', error.message);
    case 'cut':
      return new ModelFailure('llm_bad_response', 'The answer broke off.');
    case 'too_large':
      return new ModelFailure('llm_bad_response', error.message);
  }
}

function describeAnswer(error: InstanceType<typeof APICallError>): ModelFailure {
  const { statusCode, message, responseBody = '', responseHeaders = {} } = error;
  if (statusCode === undefined) {
    return new ModelFailure('llm_unavailable', message, { transient: error.isRetryable });
  }
  if (statusCode < 300) return new ModelFailure('llm_bad_response');
  return describeStatus(statusCode, message, responseBody, retryAfterMs(responseHeaders));
}

function describeStatus(
  status: number,
  message: string,
  body: string,
  wait?: number,
): ModelFailure {
  // The vendor's message may repeat parts of the key.
  if (status === 401 || status === 403) return new ModelFailure('llm_unauthorized');
  const traits = { transient: true, retryAfterMs: wait };
  if (status === 429) return new ModelFailure('llm_rate_limited', undefined, traits);
  if (status === 503 || status === 529)
    return new ModelFailure('llm_overloaded', undefined, traits);
  if (status >= 500 || status === 408) {
    return new ModelFailure('llm_unavailable', `It answered ${status}.`, traits);
  }
  const overflow = status === 413 || OVERFLOW.test(message) || OVERFLOW.test(body);
  const conversationRefused = CONTENT_STATUSES.includes(status) && !NOT_THE_CONTENT.test(message);
  return new ModelFailure('llm_refused', `${status}: ${message}`, {
    overflow,
    conversationRefused,
  });
}

/** The wait requested by a response, in ms; undefined when it has none, or an invalid one. */
export function retryAfterMs(
  headers: Readonly<Record<string, string | undefined>>,
  now: number = Date.now(),
): number | undefined {
  const exact = Number(headers['retry-after-ms'] ?? Number.NaN);
  if (exact >= 0) return exact;
  const value = headers['retry-after'];
  if (value === undefined) return undefined;
  const ms = /^\d+(\.\d+)?$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - now;
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

function causesOf(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let cause = error; cause instanceof Error && chain.length < MAX_CAUSES; ) {
    chain.push(cause);
    cause = cause.cause;
  }
  return chain;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, MAX_DETAIL_CHARS);
}
