import type { AgentContext } from '../agent.ts';
import { isObject, stringAt } from './json.ts';
import { type Transcript, unpackTranscript } from './transcript.ts';

/** What brings a conversation with a vendor's CLI back. */
export interface Conversation {
  /** The CLI's own name for it. */
  readonly id: string;
  /** Where the agent's files are not kept beside it. */
  readonly transcript?: Transcript;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** No way out of the directory that it is joined to. */
const PATH_BELOW = /^(?!\/)(?!(.*\/)?\.\.(\/|$)).+\.jsonl$/;

export function conversationText(conversation: Conversation | undefined): string {
  return JSON.stringify(conversation ?? {});
}

/** The conversation that an earlier {@link conversationText} names; undefined when it names none. */
export function conversationIn(text: string | undefined): Conversation | undefined {
  const value = parsed(text);
  const id = stringAt(value, 'id');
  if (id === undefined || !UUID.test(id)) return undefined;
  const path = stringAt(value, 'transcript', 'path');
  const gzip = stringAt(value, 'transcript', 'gzip');
  if (path === undefined || gzip === undefined || !PATH_BELOW.test(path)) return { id };
  return { id, transcript: { path, gzip } };
}

/**
 * The CLI's name for the conversation that an agent goes on with, once the transcript that came along is in its place;
 * undefined when there is none.
 */
export async function takeUpConversation(
  { home, setup }: Pick<AgentContext, 'home' | 'setup'>,
  transcripts: string,
): Promise<string | undefined> {
  const earlier = conversationIn(setup.conversation);
  if (earlier?.transcript !== undefined) {
    await unpackTranscript(home, transcripts, earlier.transcript);
  }
  return earlier?.id;
}

function parsed(text = '{}'): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
