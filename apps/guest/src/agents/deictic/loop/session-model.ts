import type { LlmDialect } from '@svc/contract';
import type { ToolSet } from 'ai';
import { compact } from '../conversation/compaction.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { callModel, type ModelAnswer } from '../model/call-model.ts';
import { type CallableModel, maxOutputTokens } from '../model/create-model.ts';
import { ModelFailure } from '../model/model-failure.ts';
import { markForCache } from '../model/prompt-cache.ts';
import { withRetries } from '../model/with-retries.ts';
import type { DeicticOptions } from '../options.ts';
import type { Task } from './task.ts';

/** Room that an answer and the instructions get in the window: this much, or a quarter of a small window. */
const RESERVED_TOKENS = 40_000;
/** How often one conversation is compacted for one answer before it is given up. */
const MAX_COMPACTIONS = 2;

/** The model of a session: answers conversations of any length, and tries again where that may help. */
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
   * The answer to a conversation, which is shortened first when it outgrows the window. `onText` gets the text as
   * it comes. Throws a ModelFailure when there is none, the reason of the task's signal when that aborts.
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
        // The window is smaller than we knew.
        this.#window = Math.max(
          1_000,
          Math.floor(Math.min(this.#window, conversation.tokens()) / 2),
        );
        this.#log(`the model takes no more: going on with a window of ${this.#window} tokens`);
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
      return answer.text === '' ? '[Nothing is known of it.]' : answer.text;
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
    const marked = markForCache(this.#dialect, call.instructions, call.messages);
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
