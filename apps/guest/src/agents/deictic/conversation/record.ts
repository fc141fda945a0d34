import type { LlmDialect } from '@svc/contract';
import { type ModelMessage, modelMessageSchema } from 'ai';
import { z } from 'zod';
import { withNewestImages } from './images.ts';
import { settled } from './settled.ts';

/** The conversations of a session by agent name. That of the lead agent has the key `''`. */
export type Conversations = ReadonlyMap<string, readonly ModelMessage[]>;

interface Speaker {
  readonly dialect: LlmDialect;
  readonly model: string;
}

const VERSION = 1;

const Record = z.object({
  version: z.literal(VERSION),
  dialect: z.string(),
  model: z.string(),
  conversations: z.record(z.string(), z.array(z.unknown())),
});

/** Longest record after JSON quoting, in UTF-8, to fit into one line of the link to the worker. */
const MAX_RECORD_BYTES = 6 * 1024 * 1024;
/** The most bytes of one UTF-16 code unit of a record after quoting. */
const MAX_UNIT_BYTES = 3;

/** Closes a turn whose end was not recorded. */
const LOST = {
  result: 'The result was lost.',
  words: '[The session ended before this was answered.]',
};

/** Serialises the conversations for {@link readRecord}. Drops the oldest turns if the text would be too long. */
export function writeRecord(conversations: Conversations, { dialect, model }: Speaker): string {
  // Pictures are large, and show what was on a display long ago.
  const kept = new Map<string, readonly ModelMessage[]>(
    [...conversations].map(([agent, messages]) => [agent, withNewestImages(messages, 0)]),
  );
  for (;;) {
    const settledOnes = [...kept].map(([agent, messages]) => [agent, settled(messages, LOST)]);
    const text = JSON.stringify({
      version: VERSION,
      dialect,
      model,
      conversations: Object.fromEntries(settledOnes),
    });
    if (text.length * MAX_UNIT_BYTES <= MAX_RECORD_BYTES) return text;
    if (Buffer.byteLength(JSON.stringify(text)) <= MAX_RECORD_BYTES) return text;
    const [longest] = [...kept].sort(([, a], [, b]) => sizeOf(b) - sizeOf(a));
    if (longest === undefined) return text;
    kept.set(longest[0], withoutOldestTurns(longest[1]));
  }
}

/**
 * Parses the conversations of a record. Drops content specific to one model (reasoning, signatures) when another model
 * continues.
 * @throws an error when this version cannot read the record
 */
export function readRecord(text: string, { dialect, model }: Speaker): Conversations {
  const record = Record.parse(JSON.parse(text));
  const same = record.dialect === dialect && record.model === model;
  return new Map(
    Object.entries(record.conversations).map(([agent, raw]) => {
      const messages = z.array(modelMessageSchema).parse(raw);
      return [agent, settled(same ? messages : messages.flatMap(portable), LOST)];
    }),
  );
}

function portable(message: ModelMessage): ModelMessage[] {
  const { providerOptions: _, ...rest } = message;
  if (rest.role !== 'assistant' || typeof rest.content === 'string') return [rest];
  const content = rest.content
    .filter((part) => part.type === 'text' || part.type === 'tool-call')
    .map(({ providerOptions: _, ...part }) => part);
  return content.length === 0 ? [] : [{ ...rest, content }];
}

/** Drops about half of the messages, up to a user message. */
function withoutOldestTurns(messages: readonly ModelMessage[]): readonly ModelMessage[] {
  const half = Math.ceil(messages.length / 2);
  const start = messages.findIndex((message, index) => index >= half && message.role === 'user');
  return start === -1 ? [] : messages.slice(start);
}

function sizeOf(messages: readonly ModelMessage[]): number {
  return JSON.stringify(messages).length;
}
