import type { LlmDialect } from '@svc/contract';
import type { ModelMessage, ToolSet } from 'ai';
import { compact } from '../conversation/compaction.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { withImagesFromUser, withNewestImages } from '../conversation/images.ts';
import { callModel, type ModelAnswer } from '../model/call-model.ts';
import { type CallableModel, maxOutputTokens } from '../model/create-model.ts';
import { ModelFailure } from '../model/model-failure.ts';
import { markForCache } from '../model/prompt-cache.ts';
import { withRetries } from '../model/with-retries.ts';
import type { DeicticOptions } from '../options.ts';
import type { Task } from './task.ts';

/** Part of the context window reserved for the answer and the instructions; at most a quarter of it. */
const RESERVED_TOKENS = 40_000;
/** Bound of compactions for one answer. */
const MAX_COMPACTIONS = 2;

/** The model of a session. Compacts conversations that are too long, and retries transient failures. */
export class SessionModel {
  readonly #model: CallableModel;
  readonly #dialect: LlmDialect;
  readonly #options: DeicticOptions;
  readonly #log: (text: string) => void;
  #window: number;

  constructor(parts: {
    readonly model: CallableModel;
    readonly dialect: LlmDialect;
    readonly window: number;
    readonly options: DeicticOptions;
    log(text: string): void;
  }) {
    this.#model = parts.model;
    this.#dialect = parts.dialect;
    this.#window = parts.window;
    this.#options = parts.options;
    this.#log = parts.log;
  }

  /**
   * The answer to a conversation, which is compacted first if it outgrows the context window. `onText` receives the
   * text as it arrives. Throws a ModelFailure when the call fails, or the reason of the task's signal on an abort.
   */
  async answer(
    conversation: Conversation,
    request: {
      readonly task: Task;
      readonly instructions: string;
      readonly tools: ToolSet;
      onText(text: string): Promise<void>;
    },
  ): Promise<ModelAnswer> {
    const { task } = request;
    for (let compactions = 0; ; compactions += 1) {
      if (compactions === 0 && conversation.tokens() > this.#limit()) {
        await this.#compact(conversation, task);
      }
      try {
        return await this.#call(task, { ...request, messages: conversation.messages() });
      } catch (error) {
        const tooLong = error instanceof ModelFailure && error.traits.overflow;
        if (!tooLong || compactions >= MAX_COMPACTIONS) throw error;
        // The window is smaller than assumed.
        this.#window = Math.max(
          1_000,
          Math.floor(Math.min(this.#window, conversation.tokens()) / 2),
        );
        this.#log(
          `the conversation is too long for the model: continuing with a window of ${this.#window} tokens`,
        );
        await this.#compact(conversation, task);
      }
    }
  }

  #limit(): number {
    return this.#window - Math.min(RESERVED_TOKENS, this.#window / 4);
  }

  async #compact(conversation: Conversation, task: Task): Promise<void> {
    const before = conversation.tokens();
    const sizes = { window: this.#window, tokens: before };
    const messages = await compact(conversation.messages(), sizes, async (instructions, text) => {
      const answer = await this.#call(task, {
        instructions,
        messages: [{ role: 'user', content: text }],
        onText: async () => undefined,
      });
      return answer.text === '' ? '[No summary is available.]' : answer.text;
    });
    conversation.replace(messages);
    this.#log(`compacted the conversation from about ${before} to ${conversation.tokens()} tokens`);
  }

  async #call(
    { signal, budget }: Task,
    call: Pick<Parameters<typeof callModel>[0], 'messages' | 'tools' | 'onText'> & {
      readonly instructions: string;
    },
  ): Promise<ModelAnswer> {
    let shown = false;
    const marked = markForCache(
      this.#dialect,
      call.instructions,
      forDialect(this.#dialect, call.messages),
    );
    const answer = await withRetries(
      () =>
        callModel({
          ...call,
          ...marked,
          model: this.#model,
          maxOutputTokens: maxOutputTokens(this.#dialect),
          signal,
          onText: async (text) => {
            shown = true;
            await call.onText(text);
          },
        }),
      {
        limits: this.#options,
        signal,
        shown: () => shown,
        onRetry: ({ message }, pause) =>
          this.#log(`model call failed, next attempt in ${Math.round(pause)} ms: ${message}`),
      },
    );
    budget.useTokens(answer.inputTokens + answer.outputTokens);
    return answer;
  }
}

/** The messages with pictures where a dialect has them. */
function forDialect(dialect: LlmDialect, messages: readonly ModelMessage[]): ModelMessage[] {
  switch (dialect) {
    case 'openai':
      return withImagesFromUser(messages);
    case 'deepseek':
      // Its models read text only.
      return withNewestImages(messages, 0);
    default:
      return [...messages];
  }
}
