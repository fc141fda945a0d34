import type { PlacedAgent } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { settledWithin } from '@svc/service-kit/concurrency';
import type { SandboxAgent } from '../../sandbox/agent.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { AgentServices } from '../../sessions/services.ts';
import { AgentAccess } from '../access.ts';
import { AgentLink } from '../link/agent-link.ts';
import type { NumberedMessage } from '../link/guest-messages.ts';
import { keepLog } from '../logs/keep-log.ts';
import { PersistedState } from './persisted-state.ts';

/** What a runtime that cannot be reached any more ended with: as if it had been killed. */
const LOST_EXIT_CODE = 137;

export interface OneShotOptions {
  readonly sandbox: Sandbox;
  readonly vm: Microvm;
  readonly placed: PlacedAgent;
  readonly token: string;
  readonly services: AgentServices;
}

/** An agent with one task and no clients: how it ends is in the sandbox's record, what it said in its log. */
export class OneShot implements SandboxAgent {
  /** The way to the agent; brought up by who makes this. */
  readonly line: AgentLink;
  readonly access: AgentAccess;
  /** Where its customer wants the state; undefined: nowhere. */
  readonly persisted: PersistedState | undefined;
  readonly #options: OneShotOptions;
  #onSaved: () => void = () => undefined;
  #finishing: Promise<void> | undefined;

  constructor(options: OneShotOptions) {
    const { sandbox, vm, placed, token, services } = options;
    this.#options = options;
    this.access = new AgentAccess({
      accounts: services.accounts,
      address: vm.host,
      vmId: sandbox.id,
      vendor: placed.vendor,
      // Counted at the gateway; there is nobody to show it to.
      onUsage: () => undefined,
    });
    this.persisted = persistedOf(options, this.access);
    this.line = new AgentLink({
      dial: (signal) => vm.dialAgent(signal),
      token,
      lastN: 0,
      outbox: undefined,
      services,
      onMessages: (messages, done) => this.#onMessages(messages, done),
      isAwake: () => !vm.paused,
      onLost: () => this.#onLost(),
    });
  }

  async announce(): Promise<number> {
    return 0;
  }

  async updateConfig(): Promise<void> {
    // Its credentials came with it: there is no bundle that could be rotated.
  }

  async keepLog(): Promise<void> {
    const { vm, sandbox, services } = this.#options;
    await keepLog(vm, sandbox.id, services.logs).catch((error) =>
      services.logger.debug({ err: error }, 'cannot copy an agent log'),
    );
  }

  beforePause(): Promise<void> {
    return this.keepLog();
  }

  finish(): Promise<void> {
    this.#finishing ??= this.#finish();
    return this.#finishing;
  }

  async dispose(): Promise<void> {
    await this.release();
  }

  async release(): Promise<void> {
    this.access.withdraw();
    this.persisted?.close();
    await this.line.close();
  }

  async #finish(): Promise<void> {
    const { vm, services } = this.#options;
    const end = performance.now() + services.times.finishMs;
    const left = () => Math.max(0, end - performance.now());
    const gone = vm.exited.then(() => undefined);
    const { persisted } = this;
    if (persisted !== undefined) {
      const { saveMs } = services.times;
      await settledWithin(Promise.race([gone, this.#save()]), Math.min(saveMs, left()));
      await settledWithin(persisted.idle(), left());
    }
    await settledWithin(Promise.race([gone, this.keepLog()]), left());
  }

  async #save(): Promise<void> {
    const { vm, services } = this.#options;
    if (vm.paused) await vm.resume(AbortSignal.timeout(services.times.saveMs));
    const saved = Promise.withResolvers<void>();
    this.#onSaved = saved.resolve;
    this.line.save();
    await saved.promise;
  }

  async #onMessages(
    messages: readonly NumberedMessage[],
    done: (n: number) => void,
  ): Promise<void> {
    for (const message of messages) {
      if (message.type === 'state') {
        this.persisted?.save(message.conversation);
        this.#onSaved();
      }
      if (message.type === 'exited') await this.#onExit(message.exitCode);
    }
    done(messages.at(-1)?.n ?? 0);
  }

  async #onExit(exitCode: number): Promise<void> {
    const { sandbox, services } = this.#options;
    // Before its end is known: whoever waits for it reads the log then.
    await this.keepLog();
    await sandbox
      .noteAgentExit(exitCode)
      .catch((error) => services.onFault(error, 'note that an agent has ended'));
  }

  #onLost(): void {
    const { services, sandbox } = this.#options;
    if (!sandbox.isLive) return;
    this.#onExit(LOST_EXIT_CODE).catch((error) =>
      services.onFault(error, 'note that an agent is lost'),
    );
  }
}

function persistedOf(
  { sandbox, placed, services }: OneShotOptions,
  access: AgentAccess,
): PersistedState | undefined {
  const { persistence_url: url } = placed;
  if (url === undefined) return undefined;
  return new PersistedState({
    egress: services.egress,
    url,
    authorization: () => access.authorization,
    sessionId: placed.session?.chat_session_id ?? placed.resume_id,
    vmId: sandbox.id,
    agent: placed.kind,
    clock: services.clock,
    onFault: services.onFault,
  });
}
