import type { ModelServer } from '@svc/model-server';
import { expect } from 'vitest';

interface Block {
  readonly type: string;
  readonly id?: string;
  readonly tool_use_id?: string;
  readonly text?: string;
  readonly content?: unknown;
}

/** The body of a request to an Anthropic endpoint. */
export interface AnthropicBody {
  readonly system: unknown;
  readonly tools?: readonly { readonly name: string; readonly description: string }[];
  readonly messages: readonly { readonly role: string; readonly content: readonly Block[] }[];
}

/** The request bodies, oldest first. */
export function bodies(server: ModelServer): AnthropicBody[] {
  return server.requests.map(({ body }) => body as AnthropicBody);
}

/** All texts of a request, in order. */
export function texts({ messages }: AnthropicBody): string[] {
  return messages.flatMap(({ content }) => content.flatMap(({ text }) => text ?? []));
}

/** Checks the vendor's rules: roles alternate, and the results of all calls follow them directly. */
export function expectValid({ messages }: AnthropicBody): void {
  expect(messages[0]?.role).toBe('user');
  for (const [index, { role, content }] of messages.entries()) {
    expect(role).toBe(index % 2 === 0 ? 'user' : 'assistant');
    expect(content.length).toBeGreaterThan(0);
    const calls = content.filter(({ type }) => type === 'tool_use').map(({ id }) => id);
    const results = (messages[index + 1]?.content ?? []).flatMap(
      ({ tool_use_id }) => tool_use_id ?? [],
    );
    if (calls.length > 0) expect(results.sort()).toEqual(calls.sort());
    else expect(results).toEqual([]);
  }
}
