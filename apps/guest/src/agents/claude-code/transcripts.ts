import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Whether Claude Code has kept the conversation of this session below its config directory. */
export async function hasTranscript(configDirectory: string, session: string): Promise<boolean> {
  const projects = join(configDirectory, 'projects');
  const directories = await readdir(projects).catch((): string[] => []);
  for (const directory of directories) {
    const files = await readdir(join(projects, directory)).catch((): string[] => []);
    if (files.includes(`${session}.jsonl`)) return true;
  }
  return false;
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
