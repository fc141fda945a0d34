import type { AgentContext } from '../agent.ts';
import { isObject, stringAt } from './json.ts';
import { type Transcript, unpackTranscript } from './transcript.ts';

/** The record from which a conversation with a vendor's CLI is restored. */
export interface Conversation {
  /** The CLI's own id of the conversation. */
  readonly id: string;
  /** Present where the agent's files are not saved separately. */
  readonly transcript?: Transcript;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** A relative path that stays inside its directory. */
const SAFE_PATH = /^(?!\/)(?!(.*\/)?\.\.(\/|$)).+\.jsonl$/;

/** Serialises a conversation, for {@link parseConversation}. */
export function formatConversation(conversation: Conversation | undefined): string {
  return JSON.stringify(conversation ?? {});
}

/** Parses the text of {@link formatConversation}; undefined when it holds no valid conversation. */
export function parseConversation(text: string | undefined): Conversation | undefined {
  const value = parsed(text);
  const id = stringAt(value, 'id');
  if (id === undefined || !UUID.test(id)) return undefined;
  const path = stringAt(value, 'transcript', 'path');
  const gzip = stringAt(value, 'transcript', 'gzip');
  if (path === undefined || gzip === undefined || !SAFE_PATH.test(path)) return { id };
  return { id, transcript: { path, gzip } };
}

/**
 * Puts the transcript of the setup's conversation, if it has one, into the CLI's directory. Returns the CLI's id of the
 * conversation; undefined when there is none.
 */
export async function restoreConversation(
  { home, setup }: Pick<AgentContext, 'home' | 'setup'>,
  transcripts: string,
): Promise<string | undefined> {
  const earlier = parseConversation(setup.conversation);
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
