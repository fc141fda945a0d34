import type { AssistantModelMessage, ModelMessage } from 'ai';
import { estimateTokens } from './estimate.ts';
import { type Stop, settled, toolResult } from './settled.ts';

/** The messages between an agent and its model. */
export class Conversation {
  #messages: ModelMessage[];
  /** The endpoint's last token count, which covers the first `messages` of the conversation. */
  #reported: { readonly messages: number; readonly tokens: number } | undefined;

  constructor(messages: readonly ModelMessage[] = []) {
    this.#messages = [...messages];
  }

  /** A copy of the list; the messages themselves are immutable. */
  messages(): ModelMessage[] {
    return [...this.#messages];
  }

  /** Approximate size in tokens: the last reported count plus an estimate for later messages. */
  tokens(): number {
    const { messages = 0, tokens = 0 } = this.#reported ?? {};
    return tokens + estimateTokens(this.#messages.slice(messages));
  }

  /** Adds a user message. */
  ask(prompt: string): void {
    this.#messages.push({ role: 'user', content: prompt });
  }

  /** Adds the model's answer. `tokens` is the endpoint's count up to here; 0 if it does not count. */
  answer(message: AssistantModelMessage, tokens: number): void {
    this.#messages.push(message);
    this.#reported = tokens > 0 ? { messages: this.#messages.length, tokens } : undefined;
  }

  /** Adds the result of a tool call in the last answer. */
  result(id: string, name: string, text: string, isError: boolean): void {
    const part = toolResult({ toolCallId: id, toolName: name }, text, isError);
    const last = this.#messages.at(-1);
    if (last?.role === 'tool') {
      this.#messages[this.#messages.length - 1] = { ...last, content: [...last.content, part] };
    } else {
      this.#messages.push({ role: 'tool', content: [part] });
    }
  }

  /** Replaces all messages. */
  replace(messages: readonly ModelMessage[]): void {
    this.#messages = [...messages];
    this.#reported = undefined;
  }

  /** Closes a turn that stopped early, so that the conversation is valid again. */
  settle(stop: Stop): void {
    this.replace(settled(this.#messages, stop));
  }
}
