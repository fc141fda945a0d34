import { randomUUID } from 'node:crypto';
import {
  type AgentSecrets,
  type PlacedAgent,
  ServiceError,
  type SessionState,
} from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { PreparedAgent } from '../agents/agent-starter.ts';
import type { AgentKind, AssignedAgent, StartInput } from '../agents/agents.ts';
import { fetchForStart, restoreCredentials } from '../agents/credentials.ts';
import { prepareAgent } from '../agents/prepare-agent.ts';
import { setupOf } from '../agents/setup.ts';
import { ControlPlaneError } from '../control-plane/control-plane-transport.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { buildSession, type SessionDeps } from './build-session.ts';
import type { JournalOwner } from './journal/directory.ts';
import type { SessionRegistry } from './registry.ts';
import { restoreFiles } from './restore-files.ts';
import type { PlacedSession, Session } from './session.ts';
import { SessionFiles, type SessionFilesOptions } from './session-files.ts';

export interface SessionStarterOptions {
  readonly registry: SessionRegistry;
  readonly files: Omit<SessionFilesOptions, 'held'>;
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
    return prepareAgent(this.#prepare(sandbox, placed, signal), {
      start: (prepared, vm, starting) =>
        this.#start(sandbox, { ...agent, placed }, input, prepared, vm, starting),
      discard: ({ files }) => files.remove(),
    });
  }

  async adopt(sandbox: Sandbox, { placed, token }: AssignedAgent, vm: Microvm): Promise<Session> {
    const { registry, sessions } = this.#options;
    const adopted = withSession(placed);
    const session = buildSession(
      {
        sandbox,
        vm,
        placed: adopted,
        token,
        files: await SessionFiles.open(this.#filesOf(sandbox), ownerOf(adopted, sandbox.id)),
      },
      sessions,
    );
    registry.add(session);
    session.reconnect();
    const { onFault } = sessions;
    restoreCredentials(session, (signal) => session.refreshSecrets(signal), onFault);
    return session;
  }

  async #prepare(sandbox: Sandbox, placed: PlacedSession, signal: AbortSignal): Promise<Prepared> {
    const { api } = this.#options.sessions;
    const { id: vmId } = sandbox;
    const { resumed, generation, chat_session_id: sessionId } = placed.session;
    const numberer = randomUUID();
    const reservation = { generation, vm_id: vmId, numberer };
    const [secrets, numbers, earlier] = await Promise.all([
      fetchForStart(() => api.agentSecrets(vmId, signal), signal),
      fetchForStart(() => api.reserveFrames(sessionId, reservation, signal), signal),
      resumed ? fetchState(api, sessionId, signal) : undefined,
    ]);
    const start = { earlier, numberer, numbers };
    const files = this.#filesOf(sandbox);
    const created = await SessionFiles.create(files, ownerOf(placed, vmId), start);
    return { secrets, earlier, files: created };
  }

  #filesOf({ assignment }: Sandbox): SessionFilesOptions {
    const { files, sessions } = this.#options;
    return { ...files, held: sessions.links.of(assignment.tenant_id) };
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
    const session = buildSession({ sandbox, vm, placed, token, files }, sessions);
    const filesId = earlier?.files_id;
    try {
      session.useSecrets(secrets);
      if (earlier !== undefined && filesId !== undefined) {
        const { chat_session_id: sessionId, generation } = placed.session;
        const deps = { ...sessions, tenantId: sandbox.assignment.tenant_id };
        await restoreFiles({ sessionId, generation }, earlier, vm, deps, signal);
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
      await session.dispose().catch((fault) => sessions.onFault(fault, 'dispose of a session'));
      throw error;
    }
  }
}

/**
 * Fetches what a session continues from.
 * @throws ServiceError `session_files_damaged`, `object_store_unavailable`; ControlPlaneError
 */
async function fetchState(
  api: SessionDeps['api'],
  sessionId: string,
  signal: AbortSignal,
): Promise<SessionState> {
  try {
    return await fetchForStart(() => api.state(sessionId, signal), signal);
  } catch (error) {
    const code = error instanceof ControlPlaneError ? error.code : undefined;
    if (code === 'session_files_damaged' || code === 'object_store_unavailable') {
      throw new ServiceError(code, undefined, { cause: error });
    }
    throw error;
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
