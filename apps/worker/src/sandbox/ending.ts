import { MicrovmError } from '@svc/microvm';
import { retry, SingleFlight, settledWithin } from '@svc/service-kit/concurrency';
import type { SandboxAgent } from './agent.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { MountedWorkspace } from './workspace.ts';

const PROVISION_WAIT_MS = 30_000;
const POWER_WAIT_MS = 5_000;
const LABEL_WAIT_MS = 5_000;
/** A full disk or a slow one must not keep the VM. */
const USAGE_WAIT_MS = 2_000;
const DESTROY_ATTEMPTS = 3;

/** The sandbox as its teardown sees it. */
export interface EndingOptions {
  readonly lifecycle: Pick<Lifecycle, 'hasRun' | 'vm' | 'stop' | 'refreshCpuSeconds' | 'finish'>;
  readonly agent: () => SandboxAgent | undefined;
  readonly workspace: () => MountedWorkspace | undefined;
  /** Settles, never rejects, when no VM is being made. */
  readonly provisioned: () => Promise<unknown>;
  /** Saves what is lost with the VM but for its contents; never rejects. */
  readonly beforeDestroy: () => Promise<void>;
  /** Settles when no pause or resume is in progress. */
  readonly powerIdle: () => Promise<void>;
  /** Called with failures that no caller waits for. */
  readonly onFault: (error: unknown, action: string) => void;
}

/** The teardown of one sandbox: one at a time, shared by all callers, repeatable after a failure. */
export class Ending {
  readonly #options: EndingOptions;
  readonly #flight = new SingleFlight<void>();
  readonly #hurry = Promise.withResolvers<void>();
  #isHurried = false;

  constructor(options: EndingOptions) {
    this.#options = options;
  }

  get active(): boolean {
    return this.#flight.active;
  }

  /** Saves nothing more: destroys the VM, now or as soon as the teardown runs. */
  hurry(): void {
    this.#isHurried = true;
    this.#hurry.resolve();
  }

  run(): Promise<void> {
    return this.#flight.run(() => this.#teardown());
  }

  async #teardown(): Promise<void> {
    const { lifecycle, agent, workspace, provisioned, powerIdle, beforeDestroy, onFault } =
      this.#options;
    // Both abort with the sandbox's signal; the teardown does not wait indefinitely for one that fails to.
    await settledWithin(provisioned(), PROVISION_WAIT_MS);
    await settledWithin(powerIdle(), POWER_WAIT_MS);
    const stopping = lifecycle.stop().catch((error) => {
      if (error instanceof MicrovmError && error.code === 'vm_gone') return;
      // A full disk must not keep a sandbox alive: without the label a restart adopts it as running, and the
      // ledger ends it.
      onFault(error, 'record that the sandbox is ending');
    });
    await settledWithin(stopping, LABEL_WAIT_MS);
    // A create that is rolled back has nothing to save.
    if (lifecycle.hasRun && !this.#isHurried) {
      const saving = [
        agent()
          ?.finish()
          .catch((error) => onFault(error, 'save the state of an agent')),
        workspace()
          ?.finish()
          .catch((error) => onFault(error, 'save a workspace')),
      ];
      await Promise.race([Promise.all(saving), this.#hurry.promise]);
    }
    await lifecycle.refreshCpuSeconds();
    await settledWithin(beforeDestroy(), USAGE_WAIT_MS);
    await this.#destroyVm();
    // First, because whoever learns of the end may resume the session.
    await agent()
      ?.dispose()
      .catch((error) => onFault(error, 'dispose of an agent'));
    lifecycle.finish();
  }

  async #destroyVm(): Promise<void> {
    const { lifecycle } = this.#options;
    await retry(() => lifecycle.vm?.destroy() ?? Promise.resolve(), {
      attempts: DESTROY_ATTEMPTS,
      baseMs: 250,
    });
  }
}
