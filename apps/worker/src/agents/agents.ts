import type { AgentSecrets, PlaceSandboxRequest, SessionState } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { retry, withDeadline } from '@svc/service-kit/concurrency';
import { mayPass } from '../control-plane/control-plane-transport.ts';
import type { SandboxAgent } from '../sandbox/agent.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { AgentServices } from '../sessions/services.ts';
import type { Session } from '../sessions/session.ts';
import {
  adoptSession,
  earlierState,
  makeSessionFiles,
  removeSessionFiles,
  type SessionFiles,
  startSession,
} from '../sessions/start-session.ts';
import type { AgentStarter, PreparedAgent } from './agent-starter.ts';
import { OneShot } from './one-shot/one-shot.ts';
import { setupOf } from './setup.ts';

interface Fetched {
  readonly secrets: AgentSecrets;
  readonly earlier: SessionState | undefined;
  /** Of a session. */
  readonly files: SessionFiles | undefined;
}

const FETCH_ATTEMPTS = 4;

/** Starts the agents of sandboxes, and takes up those that an earlier worker left. */
export class Agents implements AgentStarter {
  readonly #services: AgentServices;

  constructor(services: AgentServices) {
    this.#services = services;
  }

  prepare(sandbox: Sandbox, request: PlaceSandboxRequest, signal: AbortSignal): PreparedAgent {
    const fetching = this.#fetch(sandbox, request, signal);
    // Whoever starts the agent learns of it; a create that fails before that does not care.
    fetching.catch(() => undefined);
    let isTaken = false;
    return {
      start: async (vm, until) => {
        const fetched = await fetching;
        isTaken = true;
        return this.#start(sandbox, request, fetched, vm, until);
      },
      abandon: async () => {
        if (isTaken) return;
        const { files } = (await fetching.catch(() => undefined)) ?? {};
        if (files !== undefined) await removeSessionFiles(files);
      },
    };
  }

  /** Goes on with the agent of a sandbox that was taken up; its credentials are fetched until they are there. */
  async adopt(sandbox: Sandbox, vm: Microvm): Promise<SandboxAgent | undefined> {
    const { placement, agent_token: token } = sandbox.assignment;
    const placed = placement.agent;
    if (placed === undefined || token === undefined) return undefined;
    if (placed.session !== undefined) {
      const { session } = placed;
      const adopted = await adoptSession(sandbox, { placed, session, token }, vm, this.#services);
      this.#whenThere(sandbox, (signal) => adopted.refreshSecrets(signal));
      return adopted;
    }
    const adopted = new OneShot({ sandbox, vm, placed, token, services: this.#services });
    adopted.line.attach();
    this.#whenThere(sandbox, async (signal) => {
      adopted.access.take(await this.#services.api.agentSecrets(sandbox.id, signal));
    });
    return adopted;
  }

  async #fetch(
    sandbox: Sandbox,
    { placement }: PlaceSandboxRequest,
    signal: AbortSignal,
  ): Promise<Fetched> {
    const { api } = this.#services;
    const options = { attempts: FETCH_ATTEMPTS, signal, isTransient: mayPass };
    const session = placement.agent?.session;
    const [secrets, earlier] = await Promise.all([
      retry(() => api.agentSecrets(sandbox.id, signal), options),
      session === undefined
        ? undefined
        : retry(() => earlierState(session, this.#services, signal), options),
    ]);
    const files =
      session === undefined
        ? undefined
        : await makeSessionFiles(session, sandbox.id, earlier, this.#services);
    return { secrets, earlier, files };
  }

  async #start(
    sandbox: Sandbox,
    request: PlaceSandboxRequest,
    fetched: Fetched,
    vm: Microvm,
    signal: AbortSignal,
  ): Promise<Session | OneShot> {
    const placed = request.placement.agent;
    const token = sandbox.assignment.agent_token;
    if (placed === undefined || token === undefined) throw new Error('no agent is to be started');
    const { session } = placed;
    const { files } = fetched;
    if (session !== undefined && files !== undefined) {
      const start = { sandbox, request, placed, session, token, ...fetched, files };
      return startSession(start, vm, this.#services, signal);
    }
    const oneShot = new OneShot({ sandbox, vm, placed, token, services: this.#services });
    try {
      oneShot.access.take(fetched.secrets);
      const conversation = await oneShot.persisted?.fetch(signal);
      const setup = setupOf(placed, request, fetched.secrets, {
        conversation,
        restoreFiles: false,
      });
      await oneShot.line.configure(setup, withDeadline(signal, this.#services.times.configureMs));
      return oneShot;
    } catch (error) {
      await oneShot.dispose();
      throw error;
    }
  }

  /** Tries in the background for as long as the sandbox lives. */
  #whenThere(sandbox: Sandbox, work: (signal: AbortSignal) => Promise<void>): void {
    const { signal } = sandbox;
    const options = { attempts: Number.POSITIVE_INFINITY, baseMs: 100, maxMs: 5_000, signal };
    retry(() => work(signal), options).catch((error) => {
      if (!signal.aborted) this.#services.onFault(error, `give ${sandbox.id} its credentials`);
    });
  }
}
