import {
  type AgentSecrets,
  type PlacedAgent,
  RESTORE_ARCHIVE,
  type SessionState,
} from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { PreparedAgent } from '../agents/agent-starter.ts';
import type { AgentKind, AssignedAgent, StartInput } from '../agents/agents.ts';
import { fetchForStart, restoreCredentials } from '../agents/credentials.ts';
import { modelOf, setupOf } from '../agents/setup.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { buildSession, type SessionDeps } from './build-session.ts';
import type { JournalOwner } from './journal/directory.ts';
import type { SessionRegistry } from './registry.ts';
import type { PlacedSession, Session } from './session.ts';
import { SessionFiles, type SessionFilesOptions } from './session-files.ts';

export interface SessionStarterOptions {
  readonly registry: SessionRegistry;
  readonly files: SessionFilesOptions;
  readonly sessions: SessionDeps;
}

/** Everything about a session that is ready before its VM is. */
interface Prepared {
  readonly secrets: AgentSecrets;
  /** The state of a resumed session. */
  readonly earlier: SessionState | undefined;
  readonly files: SessionFiles;
}

/** Starts and adopts the agents of sessions. */
export class SessionStarter implements AgentKind {
  readonly #options: SessionStarterOptions;

  constructor(options: SessionStarterOptions) {
    this.#options = options;
  }

  prepare(
    sandbox: Sandbox,
    agent: AssignedAgent,
    input: StartInput,
    signal: AbortSignal,
  ): PreparedAgent {
    const placed = withSession(agent.placed);
    const preparing = this.#prepare(sandbox.id, placed, signal);
    // The start reports a failure; a create that fails before it does not need to.
    preparing.catch(() => undefined);
    let isTaken = false;
    return {
      start: async (vm, starting) => {
        const prepared = await preparing;
        isTaken = true;
        return this.#start(sandbox, { ...agent, placed }, input, prepared, vm, starting);
      },
      abandon: async () => {
        if (isTaken) return;
        const prepared = await preparing.catch(() => undefined);
        await prepared?.files.remove();
      },
    };
  }

  async adopt(sandbox: Sandbox, { placed, token }: AssignedAgent, vm: Microvm): Promise<Session> {
    const { registry, files, sessions } = this.#options;
    const adopted = withSession(placed);
    const session = buildSession(
      {
        sandbox,
        vm,
        placed: adopted,
        token,
        files: await SessionFiles.open(files, ownerOf(adopted, sandbox.id)),
      },
      sessions,
    );
    registry.add(session);
    session.reconnect();
    const { onFault } = sessions;
    restoreCredentials(sandbox, (signal) => session.refreshSecrets(signal), onFault);
    return session;
  }

  async #prepare(vmId: string, placed: PlacedSession, signal: AbortSignal): Promise<Prepared> {
    const { sessions, files } = this.#options;
    const { api } = sessions;
    const { resumed, chat_session_id: sessionId } = placed.session;
    const [secrets, earlier] = await Promise.all([
      fetchForStart(() => api.agentSecrets(vmId, signal), signal),
      resumed ? fetchForStart(() => api.state(sessionId, signal), signal) : undefined,
    ]);
    const created = await SessionFiles.create(files, ownerOf(placed, vmId), earlier);
    return { secrets, earlier, files: created };
  }

  /** Settles when the agent is ready. A failure leaves nothing behind. */
  async #start(
    sandbox: Sandbox,
    { placed, token }: AssignedAgent & { readonly placed: PlacedSession },
    input: StartInput,
    { secrets, earlier, files }: Prepared,
    vm: Microvm,
    signal: AbortSignal,
  ): Promise<Session> {
    const { registry, sessions } = this.#options;
    const model = modelOf(placed, secrets);
    const named = model === undefined ? placed : { ...placed, model };
    const session = buildSession({ sandbox, vm, placed: named, token, files }, sessions);
    const filesId = earlier?.files_id;
    try {
      session.useSecrets(secrets);
      if (filesId !== undefined) {
        await restoreFiles(placed.session.chat_session_id, filesId, vm, sessions.api, signal);
      }
      const setup = setupOf({
        placed,
        input,
        secrets,
        conversation: earlier?.conversation,
        restoreFiles: filesId !== undefined,
      });
      await session.start(setup, withDeadline(signal, sessions.timeouts.configureMs));
      registry.add(session);
      return session;
    } catch (error) {
      await session.dispose();
      throw error;
    }
  }
}

function withSession(placed: PlacedAgent): PlacedSession {
  const { session } = placed;
  if (session === undefined) throw new Error('the agent has no session');
  return { ...placed, session };
}

function ownerOf({ session }: PlacedSession, vmId: string): JournalOwner {
  const { chat_session_id: session_id, generation } = session;
  return { session_id, generation, vm_id: vmId };
}

/** Uploads the files of a resumed session to the guest. */
async function restoreFiles(
  sessionId: string,
  filesId: string,
  vm: Pick<Microvm, 'upload'>,
  api: Pick<SessionDeps['api'], 'getFiles'>,
  signal: AbortSignal,
): Promise<void> {
  const files = await api.getFiles(sessionId, filesId, signal);
  try {
    await vm.upload(RESTORE_ARCHIVE, files, signal);
  } finally {
    files.destroy();
  }
}
