import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type AgentSecrets,
  type PlacedAgent,
  type PlaceSandboxRequest,
  RESTORE_ARCHIVE,
  type SessionState,
} from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { writeFileAtomic } from '@svc/service-kit';
import { withDeadline } from '@svc/service-kit/concurrency';
import { Outbox } from '../agents/link/outbox.ts';
import { setupOf } from '../agents/setup.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { filesIn, journalName } from './journal/directory.ts';
import { Journal } from './journal/journal.ts';
import type { AgentServices } from './services.ts';
import { Session } from './session.ts';

type PlacedSession = NonNullable<PlacedAgent['session']>;

export interface SessionStart {
  readonly sandbox: Sandbox;
  readonly request: PlaceSandboxRequest;
  readonly placed: PlacedAgent;
  readonly session: PlacedSession;
  readonly token: string;
  readonly secrets: AgentSecrets;
  /** Where a resumed session goes on from. */
  readonly earlier: SessionState | undefined;
  readonly files: SessionFiles;
}

/** What a session keeps on this machine, in use by nobody else. */
export interface SessionFiles {
  readonly journal: Journal;
  readonly outbox: Outbox;
  /** Gives the journal's name back. */
  readonly unclaim: () => void;
}

/** Where a resumed session goes on from; undefined for a new one. @throws ControlPlaneError */
export async function earlierState(
  session: PlacedSession,
  services: AgentServices,
  signal: AbortSignal,
): Promise<SessionState | undefined> {
  if (!session.resumed) return undefined;
  return services.api.state(session.chat_session_id, signal);
}

/** Starts a session in a VM; settles when its agent is ready. On failure nothing of it is left. */
export async function startSession(
  start: SessionStart,
  vm: Microvm,
  services: AgentServices,
  signal: AbortSignal,
): Promise<Session> {
  const { sandbox, earlier, placed, request, secrets, token, files } = start;
  const named = { ...placed, model: placed.model ?? secrets.llm.model } as PlacedAgent;
  const owned = { sandbox, placed: named, session: start.session, token };
  const session = new Session({ ...owned, vm, services, ...files });
  try {
    session.useSecrets(secrets);
    if (earlier?.files_id !== undefined) {
      await restoreFiles(start.session.chat_session_id, earlier.files_id, vm, services, signal);
    }
    const setup = setupOf(placed, request, secrets, {
      conversation: earlier?.conversation,
      restoreFiles: earlier?.files_id !== undefined,
    });
    await session.line.configure(setup, withDeadline(signal, services.times.configureMs));
    services.sessions.add(session);
    return session;
  } catch (error) {
    await session.dispose();
    throw error;
  }
}

/** Takes up a session whose VM an earlier worker left; its credentials come when the control plane answers. */
export async function adoptSession(
  sandbox: Sandbox,
  { placed, session, token }: Pick<SessionStart, 'placed' | 'session' | 'token'>,
  vm: Microvm,
  services: AgentServices,
): Promise<Session> {
  const name = nameOf(session);
  const directory = join(services.directory, name);
  const unclaim = services.sessions.claim(name);
  const journal = await Journal.open({ directory, clock: services.clock });
  await noteOwner(directory, session, sandbox.id);
  const outbox = await Outbox.open(filesIn(directory).outbox);
  const options = { sandbox, vm, placed, session, token, journal, outbox, services, unclaim };
  const adopted = new Session(options);
  services.sessions.add(adopted);
  adopted.line.attach();
  return adopted;
}

/** Makes the files of a start of a session, whatever an earlier attempt left. */
export async function makeSessionFiles(
  session: PlacedSession,
  vmId: string,
  earlier: SessionState | undefined,
  services: AgentServices,
): Promise<SessionFiles> {
  const name = nameOf(session);
  const directory = join(services.directory, name);
  const unclaim = services.sessions.claim(name);
  try {
    await mkdir(services.directory, { recursive: true, mode: 0o700 });
    const journal = await Journal.create(
      { directory, clock: services.clock },
      { frames: earlier?.frames ?? '', lastSeq: earlier?.last_seq ?? 0 },
    );
    await noteOwner(directory, session, vmId);
    const outbox = await Outbox.open(filesIn(directory).outbox);
    return { journal, outbox, unclaim };
  } catch (error) {
    unclaim();
    throw error;
  }
}

/** Removes the files of a session that did not come about. */
export async function removeSessionFiles({
  journal,
  outbox,
  unclaim,
}: SessionFiles): Promise<void> {
  try {
    await outbox.close();
    await journal.close();
    await journal.remove();
  } finally {
    unclaim();
  }
}

function nameOf({ chat_session_id: session_id, generation }: PlacedSession): string {
  return journalName({ session_id, generation });
}

async function noteOwner(directory: string, session: PlacedSession, vmId: string): Promise<void> {
  const { chat_session_id: session_id, generation } = session;
  const text = JSON.stringify({ session_id, generation, vm_id: vmId });
  await writeFileAtomic(filesIn(directory).owner, text, { durable: false });
}

async function restoreFiles(
  sessionId: string,
  filesId: string,
  vm: Microvm,
  { api }: AgentServices,
  signal: AbortSignal,
): Promise<void> {
  const files = await api.getFiles(sessionId, filesId, signal);
  try {
    await vm.upload(RESTORE_ARCHIVE, files, signal);
  } finally {
    files.destroy();
  }
}
