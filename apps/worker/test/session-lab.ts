import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { Harness, type HarnessOptions } from './harness.ts';
import { MemoryHost } from './memory-host.ts';
import { ScriptedGuest } from './scripted-guest.ts';
import { SessionSocket, type SocketOptions } from './session-socket.ts';
import type { SessionStoreDouble } from './session-store-double.ts';

type LabOptions = Omit<HarnessOptions, 'guest'>;

/** A worker, and a scripted guest that is the agent runtime of its VMs. */
export class SessionLab implements AsyncDisposable {
  readonly guest: ScriptedGuest;
  /** That of the worker that runs. */
  harness: Harness;
  readonly #options: LabOptions;
  readonly #guests: ScriptedGuest[];
  /** Of every worker, the latest first. */
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

  /** What the control plane has of its sessions. */
  get store(): SessionStoreDouble {
    return this.harness.controlPlane.sessions;
  }

  /** One more guest, for the VMs that are restored from now on. */
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

  /** The worker goes and leaves its VMs to the next; what `between` does happens while there is none. */
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

  /** Ends the worker first, which asks its guests to save. */
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
    if (lab === undefined) throw new Error('only while tests run');
    return lab;
  };
}
