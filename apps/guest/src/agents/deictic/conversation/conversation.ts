import type { AssistantModelMessage, ModelMessage } from 'ai';
import type { ToolImage } from '../../tools/tool.ts';
import { estimateTokens } from './estimate.ts';
import { withNewestImages } from './images.ts';
import { type Stop, settled, toolResult } from './settled.ts';

/** Pictures that the model sees again with each request. Older ones say little about what is on a display now. */
const MAX_IMAGES = 3;

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
  result(
    call: { readonly id: string; readonly name: string },
    text: string,
    isError: boolean,
    image?: ToolImage,
  ): void {
    const part = toolResult({ toolCallId: call.id, toolName: call.name }, text, isError, image);
    const last = this.#messages.at(-1);
    if (last?.role === 'tool') {
      this.#messages[this.#messages.length - 1] = { ...last, content: [...last.content, part] };
    } else {
      this.#messages.push({ role: 'tool', content: [part] });
    }
    if (image !== undefined) this.#messages = withNewestImages(this.#messages, MAX_IMAGES);
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
