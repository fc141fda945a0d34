import type { AgentContext } from '../agent.ts';

/** Longest text of one frame; the rest is cut. Fits into a line of the link even in the longest encoding. */
const TEXT_CHARS = 1024 * 1024;
/** Longest result of a tool in a frame. The model may have seen more; readers do not need it. */
const RESULT_CHARS = 256 * 1024;

/** Emits the frames of one turn. Ensures that every tool call gets exactly one result. */
export class TurnFrames {
  readonly #emit: AgentContext['emit'];
  readonly #openCalls = new Set<string>();
  #lastMessage = '';

  constructor(context: Pick<AgentContext, 'emit'>) {
    this.#emit = (frame) => context.emit(frame);
  }

  /** The model's last message. */
  get lastMessage(): string {
    return this.#lastMessage;
  }

  textDelta(data: string): void {
    if (data !== '') this.#emit({ type: 'text_delta', data: bounded(data, TEXT_CHARS) });
  }

  message(text: string): void {
    if (text === '') return;
    this.#lastMessage = bounded(text, TEXT_CHARS);
    this.#emit({ type: 'message', role: 'assistant', content: this.#lastMessage });
  }

  toolCall(id: string, name: string, args: unknown): void {
    if (this.#openCalls.has(id)) return;
    this.#openCalls.add(id);
    this.#emit({ type: 'tool_call', id, name, arguments: boundedJson(args) });
  }

  /** Ignores a result without an open call. */
  toolResult(id: string, content: string, isError: boolean): void {
    if (!this.#openCalls.delete(id)) return;
    const text = bounded(content, RESULT_CHARS);
    this.#emit({ type: 'tool_result', id, content: text, is_error: isError });
  }

  /** Gives all open calls this result, at the end of the turn. */
  closeCalls(content: string, isError: boolean): void {
    for (const id of [...this.#openCalls]) this.toolResult(id, content, isError);
  }
}

function bounded(text: string, chars: number): string {
  if (text.length <= chars) return text;
  return `${text.slice(0, chars)}\n… ${text.length - chars} characters left out`;
}

function boundedJson(value: unknown): unknown {
  const text = JSON.stringify(value ?? {});
  if (text.length <= TEXT_CHARS) return value ?? {};
  return { left_out: `${text.length} characters` };
}
