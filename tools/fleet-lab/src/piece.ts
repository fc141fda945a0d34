import { join } from 'node:path';
import { runSvc, SvcProcess, type SvcResult, vmRecords } from '@svc/service-driver';
import type { LabMachine } from './lab-network.ts';

/** The components of svc that run in a lab, by the command that runs them. */
export type Component = 'control-plane' | 'runtime' | 'worker';

/** One component of svc on a machine of its own. */
export class Piece implements AsyncDisposable {
  readonly machine: LabMachine;
  readonly dataDir: string;
  readonly logFile: string;
  readonly #component: Component;
  readonly #env: NodeJS.ProcessEnv;
  #process: SvcProcess | undefined;
  /** Whether its latest process became ready. */
  #isReady = false;

  /** @param directory holds the data directory and the log */
  constructor(
    component: Component,
    machine: LabMachine,
    { directory, env }: { readonly directory: string; readonly env: NodeJS.ProcessEnv },
  ) {
    this.machine = machine;
    this.dataDir = join(directory, machine.name);
    this.logFile = join(directory, `${machine.name}.log`);
    this.#component = component;
    this.#env = { ...env, SVC_DATA_DIR: this.dataDir };
  }

  /**
   * Starts it with its settings and these, also after its end, and waits until it is ready.
   * @param checkout another one, whose version of svc runs. Default: this one
   * @throws Error with its log when it ends instead
   */
  async start(settings: NodeJS.ProcessEnv = {}, checkout?: string): Promise<void> {
    const { dataDir, logFile: outputFile } = this;
    const context = {
      env: { ...this.#env, ...settings },
      launcher: this.machine.launcher,
      checkout,
    };
    const files = { dataDir, outputFile };
    this.#isReady = false;
    this.#process = await SvcProcess.spawn(context, [this.#component], files);
    await this.#process.ready();
    this.#isReady = true;
  }

  /** Runs another command of svc on its machine, with its settings and these. */
  command(args: readonly string[], settings: NodeJS.ProcessEnv = {}): Promise<SvcResult> {
    return runSvc({ env: { ...this.#env, ...settings }, launcher: this.machine.launcher }, args);
  }

  /** The ids of the sandboxes whose VMs a worker has. */
  async sandboxes(): Promise<string[]> {
    const vms = await vmRecords(this.dataDir);
    return vms.flatMap(({ vmId }) => (vmId === undefined ? [] : [vmId]));
  }

  /** Sends a signal, and waits for nothing. */
  signal(signal: NodeJS.Signals): void {
    if (this.#process?.hasEnded === false) process.kill(this.#process.pid, signal);
  }

  /** Ends it and waits for that. A worker keeps its VMs, except with SIGINT. */
  async end(signal: 'SIGTERM' | 'SIGINT' | 'SIGKILL'): Promise<void> {
    await this.#process?.end(signal);
  }

  /** Ends it with what it runs; what a crash left, too. @throws Error with the output of `svc down` when that fails */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process === undefined) return;
    this.signal('SIGCONT');
    const endsInOrder = this.#isReady && !this.#process.hasEnded;
    await this.end('SIGINT');
    if (endsInOrder || this.#component !== 'worker') return;
    // Not the worker itself, which would need a control plane.
    const { exitCode, output } = await this.command(['down']);
    if (exitCode !== 0) throw new Error(`svc down of ${this.machine.name} failed:\n${output}`);
  }
}
