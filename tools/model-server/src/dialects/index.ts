import { anthropic } from './anthropic.ts';
import { chatCompletions } from './chat-completions.ts';
import type { Dialect } from './dialect.ts';
import { google } from './google.ts';
import { responses } from './responses.ts';

const DIALECTS: readonly Dialect[] = [anthropic, chatCompletions, responses, google];

/** The dialect of a path, below any prefix; undefined if the path belongs to none. */
export function dialectAt(path: string): Dialect | undefined {
  return DIALECTS.find((dialect) => dialect.matches(path));
}

export type { Answer, Conversation, Dialect, DialectName, StreamPart } from './dialect.ts';
