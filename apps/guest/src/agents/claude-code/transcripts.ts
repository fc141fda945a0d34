import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Whether Claude Code has kept the conversation of this session below its config directory. */
export async function hasTranscript(configDirectory: string, session: string): Promise<boolean> {
  const projects = join(configDirectory, 'projects');
  for (const directory of await namesIn(projects)) {
    if ((await namesIn(join(projects, directory))).includes(`${session}.jsonl`)) return true;
  }
  return false;
}

function namesIn(directory: string): Promise<string[]> {
  return readdir(directory).catch(() => []);
}

/** The session that a conversation names; undefined when it names none. */
export function sessionIn(conversation: string | undefined): string | undefined {
  if (conversation === undefined) return undefined;
  try {
    const { session } = JSON.parse(conversation);
    return typeof session === 'string' && UUID.test(session) ? session : undefined;
  } catch {
    return undefined;
  }
}

export function conversationOf(session: string): string {
  return JSON.stringify({ session });
}
