import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { Harness, type HarnessOptions } from './harness.ts';
import { MemoryHost } from './memory-host.ts';
import { ScriptedGuest } from './scripted-guest.ts';
import { SessionSocket, type SocketOptions } from './session-socket.ts';
import type { SessionStoreDouble } from './session-store-double.ts';

type LabOptions = Omit<HarnessOptions, 'guest'>;

/** A worker whose VMs run a scripted guest as their agent runtime. */
export class SessionLab implements AsyncDisposable {
  readonly guest: ScriptedGuest;
  /** The harness of the running worker. */
  harness: Harness;
  readonly #options: LabOptions;
  readonly #guests: ScriptedGuest[];
  /** The harnesses of all workers, latest first. */
  readonly #harnesses: Harness[];

  private constructor(options: LabOptions, guest: ScriptedGuest, harness: Harness) {
    this.guest = guest;
    this.harness = harness;
    this.#options = options;
    this.#guests = [guest];
    this.#harnesses = [harness];
  }

  static async start(options: LabOptions = {}): Promise<SessionLab> {
    const guest = await ScriptedGuest.listen();
    return new SessionLab(options, guest, await Harness.start({ ...options, guest }));
  }

  /** The session store of the control plane. */
  get store(): SessionStoreDouble {
    return this.harness.controlPlane.sessions;
  }

  /** Adds a guest, which VMs restored from now on run. */
  async addGuest(): Promise<ScriptedGuest> {
    const guest = await ScriptedGuest.listen();
    this.#guests.push(guest);
    this.harness.host.runGuest(guest);
    return guest;
  }

  /** Attaches a client to a session. */
  attach(session: string, options: SocketOptions = {}): Promise<SessionSocket> {
    return SessionSocket.open(this.harness, session, options);
  }

  /** Starts a session and attaches a client to it. */
  async startAttached() {
    const started = await this.harness.startSession();
    return { ...started, client: await this.attach(started.session) };
  }

  /** Restarts the worker, which leaves its VMs to its successor. `between` runs while there is no worker. */
  async restart(between: () => Promise<void> | void = () => undefined): Promise<void> {
    const { worker, host, controlPlane, dataDir } = this.harness;
    await worker.close({ keepSandboxes: true });
    await between();
    this.harness = await Harness.start({
      ...this.#options,
      guest: this.guest,
      host: new MemoryHost(host.live),
      controlPlane,
      dataDir,
      withoutControlPlane: true,
    });
    this.#harnesses.unshift(this.harness);
    await this.harness.worker.ready;
  }

  /** Stops the worker first, because it asks its guests to save. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const harness of this.#harnesses) await harness[Symbol.asyncDispose]();
    for (const guest of this.#guests) await guest[Symbol.asyncDispose]();
  }
}

/** A lab for each test of a file, or one for all of them. */
export function useSessionLab(
  options: LabOptions = {},
  per: 'test' | 'file' = 'test',
): () => SessionLab {
  let lab: SessionLab | undefined;
  const [before, after] = per === 'test' ? [beforeEach, afterEach] : [beforeAll, afterAll];
  before(async () => {
    lab = await SessionLab.start(options);
  });
  after(async () => {
    await lab?.[Symbol.asyncDispose]();
    lab = undefined;
  });
  return () => {
    if (lab === undefined) throw new Error('the lab exists only while tests run');
    return lab;
  };
}
