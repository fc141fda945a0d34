import {
  type AssistantModelMessage,
  type FinishReason,
  type LanguageModelUsage,
  type ModelMessage,
  type SystemModelMessage,
  streamText,
  type TextStreamPart,
  type ToolSet,
} from 'ai';
import type { CallableModel } from './create-model.ts';
import { describeFailure, ModelFailure } from './model-failure.ts';

/** A tool that the model wants to run. */
export interface ToolRequest {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  /** Why it cannot be run as it is: there is no such tool, or the input has another form. */
  readonly problem?: string;
}

/** One whole answer of a model. */
export interface ModelAnswer {
  readonly text: string;
  /** Undefined when the model said nothing at all. */
  readonly message: AssistantModelMessage | undefined;
  readonly requests: readonly ToolRequest[];
  readonly finish: FinishReason;
  /** As the endpoint reports them; 0 where it does not. */
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface ModelCall {
  readonly model: CallableModel;
  readonly instructions: string | SystemModelMessage;
  readonly messages: ModelMessage[];
  readonly tools?: ToolSet;
  readonly maxOutputTokens?: number | undefined;
  readonly signal: AbortSignal;
  /** The next piece of the answer's text; the stream is read on when it settles. */
  onText(text: string): Promise<void>;
}

/** More than any model says in one answer. A longer one is not from a model. */
const MAX_ANSWER_CHARS = 1024 * 1024;

/**
 * Asks the model once and reads its answer to the end.
 * @throws a ModelFailure when no whole answer comes, the reason of `signal` when that aborts
 */
export async function callModel(call: ModelCall): Promise<ModelAnswer> {
  const result = streamText({
    model: call.model,
    instructions: call.instructions,
    messages: call.messages,
    ...(call.tools === undefined ? {} : { tools: call.tools }),
    ...(call.maxOutputTokens === undefined ? {} : { maxOutputTokens: call.maxOutputTokens }),
    // Retries are ours: only we know what of an answer was shown.
    maxRetries: 0,
    abortSignal: call.signal,
    // Errors come as parts of the stream as well.
    onError: () => undefined,
  });
  let text = '';
  let chars = 0;
  let end: { finish: FinishReason; raw: string | undefined; usage: LanguageModelUsage } | undefined;
  const requests: ToolRequest[] = [];
  for await (const part of readParts(result.stream, call.signal)) {
    switch (part.type) {
      case 'text-delta':
        text += part.text;
        chars += part.text.length;
        if (part.text !== '') await call.onText(part.text);
        break;
      case 'reasoning-delta':
        chars += part.text.length;
        break;
      case 'tool-input-delta':
        chars += part.delta.length;
        break;
      case 'tool-call':
        requests.push(requestOf(part));
        break;
      case 'finish-step':
        end = { finish: part.finishReason, raw: part.rawFinishReason, usage: part.usage };
        break;
    }
    if (chars > MAX_ANSWER_CHARS) throw new ModelFailure('llm_bad_response', 'It is too long.');
  }
  call.signal.throwIfAborted();
  if (end === undefined || isCutOff(end.finish, end.raw)) {
    throw new ModelFailure('llm_bad_response', 'The answer broke off.');
  }
  if (end.finish === 'content-filter') {
    throw new ModelFailure('llm_refused', 'The model declines to answer.');
  }
  if (new Set(requests.map(({ id }) => id)).size < requests.length) {
    throw new ModelFailure('llm_bad_response', 'Two tool calls have the same id.');
  }
  const messages = await result.responseMessages;
  return {
    text,
    message: meaningful(messages.find((message) => message.role === 'assistant')),
    requests,
    finish: end.finish,
    inputTokens: end.usage.inputTokens ?? 0,
    outputTokens: end.usage.outputTokens ?? 0,
  };
}

/** The stream without its errors, which are thrown; nor does an aborted one just end. */
async function* readParts(
  stream: AsyncIterable<TextStreamPart<ToolSet>>,
  signal: AbortSignal,
): AsyncIterable<TextStreamPart<ToolSet>> {
  try {
    for await (const part of stream) {
      if (part.type === 'error') throw part.error;
      yield part;
      signal.throwIfAborted();
    }
  } catch (error) {
    signal.throwIfAborted();
    throw describeFailure(error);
  }
}

/** Every vendor says why its answer ends; where none was said, the stream ended before. */
function isCutOff(finish: FinishReason, raw: string | undefined): boolean {
  return (
    finish === 'interrupted' || finish === 'error' || (finish === 'other' && raw === undefined)
  );
}

/**
 * What of an answer goes into the conversation: not the bookkeeping of the SDK, nor blank text, which models say now
 * and then and some refuse to read again. Undefined when it says nothing and asks for nothing.
 */
function meaningful(message: AssistantModelMessage | undefined): AssistantModelMessage | undefined {
  if (message === undefined || typeof message.content === 'string') return message;
  const content = message.content.filter(
    (part) =>
      part.type === 'reasoning' ||
      part.type === 'tool-call' ||
      (part.type === 'text' && part.text.trim() !== ''),
  );
  return content.every(({ type }) => type === 'reasoning') ? undefined : { ...message, content };
}

function requestOf(part: {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
  readonly invalid?: boolean | undefined;
  readonly error?: unknown;
}): ToolRequest {
  const request = { id: part.toolCallId, name: part.toolName, input: part.input };
  if (!part.invalid) return request;
  const { error } = part;
  return { ...request, problem: error instanceof Error ? error.message : 'The call is not valid.' };
}
