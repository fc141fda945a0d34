import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '@svc/service-kit';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';

/** The session that a journal belongs to, stored beside its frames for a process that does not know the session. */
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

const numbering = Compile(
  Type.Object({
    numberer: Type.String({ minLength: 1 }),
    reserved: Type.Integer({ minimum: 0 }),
  }),
);

const taskRunning = Compile(Type.Boolean());

/** The name of the directory that holds the journal of one start of a session. */
export function journalName({ session_id, generation }: Omit<JournalOwner, 'vm_id'>): string {
  const name = `${session_id}.${generation}`;
  if (!SAFE_NAME.test(name)) throw new Error('the session id cannot name a directory');
  return name;
}

/** The path of the outbox in a journal's directory. */
export function outboxPath(directory: string): string {
  return join(directory, 'outbox');
}

/** The path of the file in a journal's directory whose presence says that the agent's files are due. */
export function filesDuePath(directory: string): string {
  return join(directory, 'files-due');
}

/** Records which session a journal belongs to. */
export async function writeOwner(directory: string, value: JournalOwner): Promise<void> {
  await writeFileAtomic(ownerPath(directory), JSON.stringify(value), { durable: false });
}

/** The session that a journal belongs to; undefined when its record is missing or damaged. */
export async function readOwner(directory: string): Promise<JournalOwner | undefined> {
  return readRecord(ownerPath(directory), owner);
}

/** Records that the control plane has committed every frame up to `seq`. */
export async function writeCommitted(directory: string, seq: number): Promise<void> {
  await writeFileAtomic(committedPath(directory), String(seq), { durable: false });
}

/** The number of the last frame recorded as committed; 0 without a valid record. */
export async function readCommitted(directory: string): Promise<number> {
  try {
    const seq = Number(await readFile(committedPath(directory), 'utf8'));
    return Number.isSafeInteger(seq) && seq >= 0 ? seq : 0;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 0;
    throw error;
  }
}

/** Records whether a task was running at the end of the frames so far, for when the frames that tell are dropped. */
export async function writeTaskRunning(directory: string, isRunning: boolean): Promise<void> {
  await writeFileAtomic(taskRunningPath(directory), String(isRunning), { durable: false });
}

/** Whether a task is recorded as running; false without a record. */
export async function readTaskRunning(directory: string): Promise<boolean> {
  return (await readRecord(taskRunningPath(directory), taskRunning)) ?? false;
}

/** The reservation of a journal's numbers, as kept for a restart. */
export interface Numbering {
  readonly numberer: string;
  /** The highest number reserved. */
  readonly reserved: number;
}

/** Records the reservation of numbers. */
export async function writeNumbering(directory: string, value: Numbering): Promise<void> {
  await writeFileAtomic(numberingPath(directory), JSON.stringify(value), { durable: false });
}

/** The reservation of numbers; undefined when its record is missing or damaged. */
export async function readNumbering(directory: string): Promise<Numbering | undefined> {
  return readRecord(numberingPath(directory), numbering);
}

async function readRecord<T>(
  path: string,
  form: { Check(value: unknown): value is T },
): Promise<T | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '');
  try {
    const value: unknown = JSON.parse(text);
    return form.Check(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function numberingPath(directory: string): string {
  return join(directory, 'numbering.json');
}

function ownerPath(directory: string): string {
  return join(directory, 'owner.json');
}

function committedPath(directory: string): string {
  return join(directory, 'committed');
}

function taskRunningPath(directory: string): string {
  return join(directory, 'task-running');
}
