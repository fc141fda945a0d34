import type { LlmDialect } from '@svc/contract';
import type { ModelMessage, SystemModelMessage } from 'ai';

const MARK = { anthropic: { cacheControl: { type: 'ephemeral' } } };

/**
 * Marks the conversation for the vendor's prompt cache, where that must be requested. Every call of a task sends the
 * same prefix, which is most of its cost.
 */
export function markForCache(
  dialect: LlmDialect,
  instructions: string,
  messages: readonly ModelMessage[],
): { instructions: SystemModelMessage; messages: ModelMessage[] } {
  const system: SystemModelMessage = { role: 'system', content: instructions };
  const last = messages.at(-1);
  if (dialect !== 'anthropic' || last === undefined) {
    return { instructions: system, messages: [...messages] };
  }
  return {
    instructions: { ...system, providerOptions: MARK },
    messages: [...messages.slice(0, -1), { ...last, providerOptions: MARK }],
  };
}
