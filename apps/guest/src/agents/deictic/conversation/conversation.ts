import type { AssistantModelMessage, ModelMessage } from 'ai';
import { estimateTokens } from './estimate.ts';
import { type Stop, settled, toolResult } from './settled.ts';

/** What an agent and its model have said so far. */
export class Conversation {
  #messages: ModelMessage[];
  /** What the endpoint reported last: so many tokens for the first `messages` of the conversation. */
  #reported: { readonly messages: number; readonly tokens: number } | undefined;

  constructor(messages: readonly ModelMessage[] = []) {
    this.#messages = [...messages];
  }

  /** A copy; the messages themselves are never changed. */
  messages(): ModelMessage[] {
    return [...this.#messages];
  }

  /** About how long it is, in tokens: as last reported, and an estimate of what came since. */
  tokens(): number {
    const { messages = 0, tokens = 0 } = this.#reported ?? {};
    return tokens + estimateTokens(this.#messages.slice(messages));
  }

  ask(prompt: string): void {
    this.#messages.push({ role: 'user', content: prompt });
  }

  /** The model's answer to everything before; `tokens` is what the endpoint counts up to here, 0 when it does not. */
  answer(message: AssistantModelMessage, tokens: number): void {
    this.#messages.push(message);
    this.#reported = tokens > 0 ? { messages: this.#messages.length, tokens } : undefined;
  }

  /** The result of a tool that the last answer asked for. */
  result(id: string, name: string, text: string, isError: boolean): void {
    const part = toolResult({ toolCallId: id, toolName: name }, text, isError);
    const last = this.#messages.at(-1);
    if (last?.role === 'tool') {
      this.#messages[this.#messages.length - 1] = { ...last, content: [...last.content, part] };
    } else {
      this.#messages.push({ role: 'tool', content: [part] });
    }
  }

  /** Puts other messages in the place of all. */
  replace(messages: readonly ModelMessage[]): void {
    this.#messages = [...messages];
    this.#reported = undefined;
  }

  /** Closes a turn that stopped before its end. */
  settle(stop: Stop): void {
    this.replace(settled(this.#messages, stop));
  }
}
