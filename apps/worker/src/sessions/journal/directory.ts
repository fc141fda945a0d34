import { join } from 'node:path';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';

/** Whose a journal is, kept beside it for the time when nobody else knows any more. */
export interface JournalOwner {
  readonly session_id: string;
  readonly generation: number;
  readonly vm_id: string;
}

const SAFE_NAME = /^[A-Za-z0-9_-]{1,128}\.\d{1,16}$/;

const owner = Compile(
  Type.Object({
    session_id: Type.String({ minLength: 1 }),
    generation: Type.Integer({ minimum: 1 }),
    vm_id: Type.String({ minLength: 1 }),
  }),
);

/** The name of the directory that holds the journal of one start of a session. */
export function journalName({ session_id, generation }: Omit<JournalOwner, 'vm_id'>): string {
  const name = `${session_id}.${generation}`;
  if (!SAFE_NAME.test(name)) throw new Error('a session id that can name no directory');
  return name;
}

/** The files in a journal's directory that are no frames. */
export function filesIn(directory: string): { readonly owner: string; readonly outbox: string } {
  return { owner: join(directory, 'owner.json'), outbox: join(directory, 'outbox') };
}

/** What an owner's file says; undefined for one that is damaged. */
export function readOwner(text: string): JournalOwner | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return owner.Check(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
