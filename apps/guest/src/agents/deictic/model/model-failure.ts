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
  /** May pass by itself. */
  readonly transient?: boolean;
  /** How long the endpoint asks to wait. */
  readonly retryAfterMs?: number | undefined;
  /** The conversation is longer than the model takes. */
  readonly overflow?: boolean;
}

/** A model call that brought no answer. The message is for the client. */
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

/** The words with which vendors say that a conversation is too long. */
const OVERFLOW =
  /prompt is too long|context.?(length|window|limit)|maximum (context|prompt)|too many (input )?tokens|input token count|exceeds? the (maximum|limit).{0,40}tokens|reduce the length|request.too.large|input is too long/i;

const UNREADABLE = [
  EmptyResponseBodyError,
  InvalidResponseDataError,
  JSONParseError,
  NoOutputGeneratedError,
  TypeValidationError,
];

/** What an error of the SDK's during a call means for the session. */
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
  // What the SDK refuses to send; on everything else it stumbled while it read the answer.
  if (AISDKError.isInstance(error)) return new ModelFailure('agent_failed', error.message);
  return new ModelFailure('llm_bad_response');
}

function describeTransport(error: TransportError): ModelFailure {
  switch (error.problem) {
    case 'unreachable':
      return new ModelFailure('llm_unavailable', error.message, { transient: true });
    case 'silent':
      // Whoever waited that long once is not made to wait again.
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
  // Vendors repeat parts of the key in what they say about it.
  if (status === 401 || status === 403) return new ModelFailure('llm_unauthorized');
  const traits = { transient: true, retryAfterMs: wait };
  if (status === 429) return new ModelFailure('llm_rate_limited', undefined, traits);
  if (status === 503 || status === 529)
    return new ModelFailure('llm_overloaded', undefined, traits);
  if (status >= 500 || status === 408) {
    return new ModelFailure('llm_unavailable', `It answered ${status}.`, traits);
  }
  const overflow = status === 413 || OVERFLOW.test(message) || OVERFLOW.test(body);
  return new ModelFailure('llm_refused', `${status}: ${message}`, { overflow });
}

/** The wait that an answer asks for, in ms; undefined when it names none that can be read. */
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
