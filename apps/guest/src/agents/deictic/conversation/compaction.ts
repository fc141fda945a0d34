import type { ModelMessage } from 'ai';
import { CHARS_PER_TOKEN, estimateTokens } from './estimate.ts';
import { transcript } from './transcript.ts';
import { truncateMiddle } from './truncate.ts';

/** What of the window a compacted conversation keeps word for word, and what its summary may take. */
const KEPT_SHARE = 0.2;
const SUMMARY_SHARE = 0.1;
/** What of the window the text to summarise may take. */
const TRANSCRIPT_SHARE = 0.6;

const INSTRUCTIONS = `You compress the record of an agent's work, so that the agent can go on from your text alone.
Write down, briefly and completely: what the user asked for and every wish still in force; what was done and decided, and why;
files, commands, names, values and errors that matter, exactly as they are; what is left to do. Write only the summary.`;

/** Asks the model for one text, outside of the conversation. */
export type Summarise = (instructions: string, text: string) => Promise<string>;

/**
 * A shorter conversation with the same meaning: a summary of the older part, then the newest messages as they are. The request that is being worked on stays word for word, as far as it fits.
 * Rejects when `summarise` does.
 */
export async function compact(
  messages: readonly ModelMessage[],
  sizes: {
    /** Of the model, in tokens. */
    readonly window: number;
    /** What the messages are now, as far as known, in tokens. */
    readonly tokens: number;
  },
  summarise: Summarise,
): Promise<ModelMessage[]> {
  // Where the endpoint counts more than we do, less of what we count fits.
  const window = sizes.window / Math.max(1, sizes.tokens / estimateTokens(messages));
  const cut = cutPoint(messages, window * KEPT_SHARE);
  const older = messages.slice(0, cut);
  const kept = shortened(messages.slice(cut), window * KEPT_SHARE);
  if (older.length === 0) return kept;
  const share = (part: number) => Math.floor(window * part * CHARS_PER_TOKEN);
  const summary = await summarise(INSTRUCTIONS, transcript(older, share(TRANSCRIPT_SHARE)));
  const request = kept.some(isPrompt) ? undefined : older.findLast(isPrompt);
  const parts = [
    '[The conversation so far was too long and is summarised here.]',
    truncateMiddle(summary, share(SUMMARY_SHARE)),
  ];
  if (typeof request?.content === 'string') {
    parts.push(
      '[The request that you are working on:]',
      truncateMiddle(request.content, share(SUMMARY_SHARE)),
    );
  }
  const opening: ModelMessage[] = [{ role: 'user', content: parts.join('\n\n') }];
  // No vendor minds an assistant that answers; some mind two users in a row.
  if (kept[0]?.role === 'user') opening.push({ role: 'assistant', content: 'Understood.' });
  return [...opening, ...kept];
}

/** Where the kept part begins: never between a call and its result. */
function cutPoint(messages: readonly ModelMessage[], keepTokens: number): number {
  let cut = messages.length;
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    if (messages[index]?.role === 'tool') continue;
    const fits = estimateTokens(messages.slice(index)) <= keepTokens;
    // The newest exchange is kept in any case, shortened.
    if (!fits && cut < messages.length) break;
    cut = index;
  }
  return cut;
}

/** The same messages with long texts and results cut in the middle, so that they fit about. */
function shortened(messages: readonly ModelMessage[], maxTokens: number): ModelMessage[] {
  if (estimateTokens(messages) <= maxTokens) return [...messages];
  const pieces = messages.reduce((sum, { content }) => {
    return sum + (typeof content === 'string' ? 1 : content.length);
  }, 0);
  const maxChars = Math.floor((maxTokens * CHARS_PER_TOKEN) / Math.max(1, pieces));
  return messages.map((message) => shortenMessage(message, maxChars));
}

function shortenMessage(message: ModelMessage, maxChars: number): ModelMessage {
  if (message.role === 'user' && typeof message.content === 'string') {
    return { ...message, content: truncateMiddle(message.content, maxChars) };
  }
  if (message.role !== 'tool') return message;
  const content = message.content.map((part) => {
    if (part.type !== 'tool-result') return part;
    const { output } = part;
    if (output.type !== 'text' && output.type !== 'error-text') return part;
    return { ...part, output: { ...output, value: truncateMiddle(output.value, maxChars) } };
  });
  return { ...message, content };
}

function isPrompt(message: ModelMessage): boolean {
  return message.role === 'user';
}
