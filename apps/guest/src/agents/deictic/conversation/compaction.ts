import type { ModelMessage } from 'ai';
import { truncateMiddle } from '../../tools/truncate.ts';
import { CHARS_PER_TOKEN, estimateTokens } from './estimate.ts';
import { textOf } from './images.ts';
import { transcript } from './transcript.ts';

/** Shares of the context window: for messages kept verbatim, and for the summary. */
const KEPT_SHARE = 0.2;
const SUMMARY_SHARE = 0.1;
/** Share of the context window for the text to summarise. */
const TRANSCRIPT_SHARE = 0.6;

const INSTRUCTIONS = `You compress the record of an agent's work so that the agent can continue from your summary alone.
State briefly and completely: the user's request and all wishes still in force; what was done and decided, and why;
relevant files, commands, names, values and errors, verbatim; what remains to be done. Write only the summary.`;

/** Asks the model for a text outside the conversation. */
export type Summarise = (instructions: string, text: string) => Promise<string>;

/**
 * Shortens a conversation: a summary replaces the older part, followed by the newest messages unchanged. The current
 * request is kept verbatim as far as it fits. Rejects when `summarise` does.
 */
export async function compact(
  messages: readonly ModelMessage[],
  sizes: {
    /** The model's context window, in tokens. */
    readonly window: number;
    /** Current size of the messages, as far as known, in tokens. */
    readonly tokens: number;
  },
  summarise: Summarise,
): Promise<ModelMessage[]> {
  // If the endpoint counts more tokens than our estimate, less of our estimate fits.
  const window = sizes.window / Math.max(1, sizes.tokens / estimateTokens(messages));
  const cut = cutPoint(messages, window * KEPT_SHARE);
  const older = messages.slice(0, cut);
  const kept = shortened(messages.slice(cut), window * KEPT_SHARE);
  if (older.length === 0) return kept;
  const share = (part: number) => Math.floor(window * part * CHARS_PER_TOKEN);
  const summary = await summarise(INSTRUCTIONS, transcript(older, share(TRANSCRIPT_SHARE)));
  const request = kept.some(isPrompt) ? undefined : older.findLast(isPrompt);
  const parts = [
    '[The conversation so far was too long. This is a summary.]',
    truncateMiddle(summary, share(SUMMARY_SHARE)),
  ];
  if (typeof request?.content === 'string') {
    parts.push(
      '[The request you are working on:]',
      truncateMiddle(request.content, share(SUMMARY_SHARE)),
    );
  }
  const opening: ModelMessage[] = [{ role: 'user', content: parts.join('\n\n') }];
  // Some vendors reject two user messages in a row.
  if (kept[0]?.role === 'user') opening.push({ role: 'assistant', content: 'Understood.' });
  return [...opening, ...kept];
}

/** Index of the first kept message, never between a call and its result. */
function cutPoint(messages: readonly ModelMessage[], keepTokens: number): number {
  let cut = messages.length;
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    if (messages[index]?.role === 'tool') continue;
    const fits = estimateTokens(messages.slice(index)) <= keepTokens;
    // The newest exchange is always kept, shortened if necessary.
    if (!fits && cut < messages.length) break;
    cut = index;
  }
  return cut;
}

/** The same messages, with long texts and results cut in the middle to fit approximately. */
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
    if (output.type === 'content') {
      const value = truncateMiddle(textOf(output), maxChars);
      return { ...part, output: { type: 'text' as const, value } };
    }
    if (output.type !== 'text' && output.type !== 'error-text') return part;
    return { ...part, output: { ...output, value: truncateMiddle(output.value, maxChars) } };
  });
  return { ...message, content };
}

function isPrompt(message: ModelMessage): boolean {
  return message.role === 'user';
}
