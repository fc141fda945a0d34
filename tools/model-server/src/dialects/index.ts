import { anthropic } from './anthropic.ts';
import { chatCompletions } from './chat-completions.ts';
import type { Dialect } from './dialect.ts';
import { google } from './google.ts';
import { responses } from './responses.ts';

const DIALECTS: readonly Dialect[] = [anthropic, chatCompletions, responses, google];

/** The dialect spoken at a path, whatever comes before its vendor's own part; undefined when there is none. */
export function dialectAt(path: string): Dialect | undefined {
  return DIALECTS.find((dialect) => dialect.matches(path));
}

export type { Answer, Conversation, Dialect, DialectName, StreamPart } from './dialect.ts';
