import { elements, member, stringOf } from '../json.ts';
import { type Answer, inHalves, type ToolCall } from './dialect.ts';

interface ItemEvent {
  readonly type: string;
  readonly data: object;
  readonly isChunk: boolean;
}

/** One output item of a response: its announcement, its events, and the complete item. */
export interface Item {
  readonly id: string;
  readonly added: object;
  readonly events: readonly ItemEvent[];
  readonly done: object;
}

/**
 * The output items of an answer. A call of a tool that the request declares as `custom` has plain text as input, and one
 * of a tool in a namespace names that too.
 */
export function itemsOf(answer: Answer, body: unknown): Item[] {
  const calls = answer.calls.map((call) =>
    isCustom(body, call.name)
      ? customCallItem(call)
      : functionCallItem(call, namespaceOf(body, call.name)),
  );
  return answer.chunks.length > 0 ? [messageItem(answer), ...calls] : calls;
}

function isCustom(body: unknown, name: string): boolean {
  return elements(member(body, 'tools')).some(
    (tool) => member(tool, 'type') === 'custom' && member(tool, 'name') === name,
  );
}

function namespaceOf(body: unknown, name: string): string | undefined {
  const namespace = elements(member(body, 'tools')).find(
    (tool) =>
      member(tool, 'type') === 'namespace' &&
      elements(member(tool, 'tools')).some((one) => member(one, 'name') === name),
  );
  return stringOf(member(namespace, 'name'));
}

function messageItem({ id: answerId, chunks }: Answer): Item {
  const id = `msg_${answerId}`;
  const item = { id, type: 'message', role: 'assistant' };
  const part = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] });
  const text = chunks.join('');
  const event = (type: string, data: object, isChunk = false) => ({
    type,
    data: { content_index: 0, ...data },
    isChunk,
  });
  return {
    id,
    added: { ...item, status: 'in_progress', content: [] },
    events: [
      event('response.content_part.added', { part: part('') }),
      ...chunks.map((delta) => event('response.output_text.delta', { delta, logprobs: [] }, true)),
      event('response.output_text.done', { text, logprobs: [] }),
      event('response.content_part.done', { part: part(text) }),
    ],
    done: { ...item, status: 'completed', content: [part(text)] },
  };
}

function functionCallItem(call: ToolCall, namespace: string | undefined): Item {
  const text = JSON.stringify(call.arguments);
  const item = {
    ...{ type: 'function_call', call_id: `call_${call.id}`, name: call.name },
    ...(namespace === undefined ? {} : { namespace }),
  };
  return callItem(`fc_${call.id}`, item, 'arguments', text, 'response.function_call_arguments');
}

function customCallItem(call: ToolCall): Item {
  const text = typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments);
  const item = { type: 'custom_tool_call', call_id: `call_${call.id}`, name: call.name };
  return callItem(`ctc_${call.id}`, item, 'input', text, 'response.custom_tool_call_input');
}

function callItem(id: string, item: object, field: string, text: string, event: string): Item {
  return {
    id,
    added: { id, ...item, status: 'in_progress', [field]: '' },
    events: [
      ...inHalves(text).map((delta) => ({
        type: `${event}.delta`,
        data: { delta },
        isChunk: false,
      })),
      { type: `${event}.done`, data: { [field]: text }, isChunk: false },
    ],
    done: { id, ...item, status: 'completed', [field]: text },
  };
}
