import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { LIMITS, ServiceError } from '@svc/contract';
import { KeyedSlots, untilAborted } from '@svc/service-kit/concurrency';
import { joinConnections } from '@svc/service-kit/streams';
import { toSandboxError } from '../sandbox/microvm-errors.ts';
import type { Power } from '../sandbox/power.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';

const IDLE_MS = LIMITS.portIdleSeconds * 1000;

/** A sandbox, as far as its ports need it. */
export type PortSandbox = Pick<Sandbox, 'id' | 'activity' | 'signal'> & {
  readonly power: Pick<Power, 'runningVm' | 'untilPause'>;
};

/** A connection to a server in a sandbox, not yet joined with its caller's. */
export interface PortConnection {
  /** Copies bytes until one side ends or the sandbox pauses or ends. */
  join(caller: Duplex): void;
}

/** Opens connections to servers on the loopback addresses of guests, and bounds their number. */
export class SandboxPorts {
  readonly #slots: KeyedSlots;
  readonly #idleMs: number;

  constructor(most: number = LIMITS.portConnectionsPerSandbox, idleMs: number = IDLE_MS) {
    this.#slots = new KeyedSlots(most);
    this.#idleMs = idleMs;
  }

  /**
   * Connects to a port. The sandbox counts as active while the connection is open. `caller` cuts the connection.
   * @throws ServiceError `sandbox_not_running`, also for a paused sandbox, `too_many_port_connections`,
   *   `port_unreachable`, `guest_unresponsive`
   */
  async open(sandbox: PortSandbox, port: number, caller: AbortSignal): Promise<PortConnection> {
    const leave = this.#take(sandbox);
    const signal = AbortSignal.any([caller, sandbox.signal, sandbox.power.untilPause]);
    try {
      const guest = await dial(sandbox, port, signal);
      return { join: (other) => void this.#join(guest, other, signal).finally(leave) };
    } catch (error) {
      leave();
      signal.throwIfAborted();
      throw toSandboxError(error);
    }
  }

  #join(guest: Socket, caller: Duplex, signal: AbortSignal): Promise<void> {
    return joinConnections(guest, caller, { signal, idleMs: this.#idleMs });
  }

  #take(sandbox: PortSandbox): () => void {
    const release = this.#slots.take(sandbox.id);
    if (release === undefined) {
      throw new ServiceError('too_many_port_connections');
    }
    const endActivity = sandbox.activity.begin();
    return () => {
      release();
      endActivity();
    };
  }
}

async function dial(sandbox: PortSandbox, port: number, signal: AbortSignal): Promise<Socket> {
  const vm = await sandbox.power.runningVm(signal);
  const dialled = vm.dialPort(port, signal);
  try {
    const guest = await untilAborted(dialled, signal);
    // Until it is joined, a failure has no other listener.
    return guest.on('error', () => guest.destroy());
  } catch (error) {
    dialled.then(
      (late) => late.destroy(),
      () => undefined,
    );
    throw error;
  }
}
