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

/** A tool call requested by the model. */
export interface ToolRequest {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  /** Why it cannot be run: an unknown tool, or invalid input. */
  readonly problem?: string;
}

/** A complete answer of a model. */
export interface ModelAnswer {
  readonly text: string;
  /** Undefined for an empty answer. */
  readonly message: AssistantModelMessage | undefined;
  readonly requests: readonly ToolRequest[];
  readonly finish: FinishReason;
  /** As reported by the endpoint; 0 if it reports none. */
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
  /** Receives the next piece of text. Reading continues when the returned promise settles. */
  onText(text: string): Promise<void>;
}

/** Longer than any real answer of a model. */
const MAX_ANSWER_CHARS = 1024 * 1024;

/**
 * Calls the model once and reads its answer to the end.
 * @throws a ModelFailure when there is no complete answer; the reason of `signal` when it aborts
 */
export async function callModel(call: ModelCall): Promise<ModelAnswer> {
  const result = streamText({
    model: call.model,
    instructions: call.instructions,
    messages: call.messages,
    ...(call.tools === undefined ? {} : { tools: call.tools }),
    ...(call.maxOutputTokens === undefined ? {} : { maxOutputTokens: call.maxOutputTokens }),
    // We retry ourselves, since only we know whether part of the answer was already shown.
    maxRetries: 0,
    abortSignal: call.signal,
    // Errors also arrive as parts of the stream.
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
    throw new ModelFailure('llm_refused', 'The model declines to answer.', {
      conversationRefused: true,
    });
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

/** The parts of the stream. Throws its errors, and the reason of `signal` for an aborted stream. */
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

/** Every vendor reports why an answer ends. Without a reason the stream broke off. */
function isCutOff(finish: FinishReason, raw: string | undefined): boolean {
  return (
    finish === 'interrupted' || finish === 'error' || (finish === 'other' && raw === undefined)
  );
}

/**
 * The answer as it goes into the conversation: without the SDK's bookkeeping, and without blank text, which some models
 * produce and others reject. Undefined when it has neither text nor tool calls.
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
