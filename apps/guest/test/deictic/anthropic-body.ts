import type { ModelServer } from '@svc/model-server';
import { expect } from 'vitest';

interface Block {
  readonly type: string;
  readonly id?: string;
  readonly tool_use_id?: string;
  readonly text?: string;
  readonly content?: unknown;
}

/** What an Anthropic endpoint was asked. */
export interface AnthropicBody {
  readonly system: unknown;
  readonly tools?: readonly { readonly name: string; readonly description: string }[];
  readonly messages: readonly { readonly role: string; readonly content: readonly Block[] }[];
}

/** The bodies that came, oldest first. */
export function bodies(server: ModelServer): AnthropicBody[] {
  return server.requests.map(({ body }) => body as AnthropicBody);
}

/** All texts of a conversation, in order. */
export function texts({ messages }: AnthropicBody): string[] {
  return messages.flatMap(({ content }) => content.flatMap(({ text }) => text ?? []));
}

/** What the vendor refuses otherwise: turns alternate, and the results of all calls come right behind them. */
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
