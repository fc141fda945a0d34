import { MicrovmError } from '@svc/microvm';
import { retry, SingleFlight, settledWithin } from '@svc/service-kit/concurrency';
import type { Sandbox } from './sandbox.ts';

const PROVISION_WAIT_MS = 30_000;
const POWER_WAIT_MS = 5_000;
const LABEL_WAIT_MS = 5_000;
const DESTROY_ATTEMPTS = 3;

/** The teardown of one sandbox: one at a time, shared by all who ask for it, repeatable when it fails. */
export class Ending {
  readonly #sandbox: Sandbox;
  readonly #onFault: (error: unknown, what: string) => void;
  readonly #flight = new SingleFlight<void>();

  constructor(sandbox: Sandbox, onFault: (error: unknown, what: string) => void) {
    this.#sandbox = sandbox;
    this.#onFault = onFault;
  }

  get active(): boolean {
    return this.#flight.active;
  }

  run(): Promise<void> {
    return this.#flight.run(() => this.#teardown());
  }

  async #teardown(): Promise<void> {
    const sandbox = this.#sandbox;
    // Aborted by the sandbox's signal; one that does not stop in time is overtaken.
    await settledWithin(sandbox.provisioned, PROVISION_WAIT_MS);
    await settledWithin(sandbox.power.idle(), POWER_WAIT_MS);
    const stopping = sandbox.beginStopping().catch((error) => {
      if (error instanceof MicrovmError && error.code === 'vm_gone') return;
      // A full disk must not keep a sandbox alive: without the label a restart sees a running one, and the ledger ends it.
      this.#onFault(error, 'note that the sandbox is ending');
    });
    await settledWithin(stopping, LABEL_WAIT_MS);
    // A create that is rolled back leaves nothing to bring home.
    if (sandbox.hasRun) await sandbox.agent?.finish();
    await sandbox.refreshCpuSeconds();
    await this.#destroyVm();
    sandbox.finish();
    await sandbox.agent?.dispose().catch((error) => this.#onFault(error, 'put an agent away'));
  }

  async #destroyVm(): Promise<void> {
    await retry(() => this.#sandbox.vm?.destroy() ?? Promise.resolve(), {
      attempts: DESTROY_ATTEMPTS,
      baseMs: 250,
    });
  }
}
