import type { LlmDialect } from '@svc/contract';
import type { ModelMessage, SystemModelMessage } from 'ai';

const MARK = { anthropic: { cacheControl: { type: 'ephemeral' } } };

/**
 * Asks for the beginning of the conversation to be kept between calls, where that must be asked for: an agent sends
 * the same beginning at each step, and it is most of what a task costs.
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
