import type { Duplex } from 'node:stream';
import { LIMITS, parsePort, ServiceError } from '@svc/contract';
import { KeyedSlots } from '@svc/service-kit/concurrency';
import type { Caller } from '../auth/caller.ts';
import type { SandboxOperations } from '../sandboxes/operations.ts';
import type { PortLinks } from './links.ts';
import type { PortTarget } from './port-target.ts';
import { PortView } from './port-view.ts';

export interface PortsParts {
  readonly links: PortLinks;
  readonly operations: Pick<SandboxOperations, 'connectPort'>;
  /** Open connections of one tenant, on this control plane. */
  readonly mostPerTenant: number;
  /** Public URL of the control plane, read for each request. */
  readonly baseUrl: () => string;
  readonly idleMs?: number;
}

/** The ports of callers' sandboxes. */
export class Ports {
  readonly links: PortLinks;
  /** A connection ends when no byte has moved for this long, in milliseconds. */
  readonly idleMs: number;
  readonly #parts: PortsParts;
  readonly #slots: KeyedSlots;
  readonly #closing = new AbortController();

  constructor(parts: PortsParts) {
    this.#parts = parts;
    this.links = parts.links;
    this.idleMs = parts.idleMs ?? LIMITS.portIdleSeconds * 1000;
    this.#slots = new KeyedSlots(parts.mostPerTenant);
  }

  /** Aborts when the control plane closes, which ends every connection. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** @throws ServiceError `port_not_allowed` */
  view(vmId: string, port: string, target: PortTarget): PortView {
    return new PortView(vmId, parsePort(port), target, this.#parts.baseUrl());
  }

  /**
   * Connects to a port of a running sandbox of the caller. The connection holds one of the caller's until it closes.
   * @throws ServiceError `too_many_port_connections`, and the errors of `SandboxOperations.connectPort`
   */
  async connect(caller: Caller, vmId: string, port: number, signal: AbortSignal): Promise<Duplex> {
    const release = this.#slots.take(caller.tenantId);
    if (release === undefined) {
      throw new ServiceError('too_many_port_connections');
    }
    try {
      const connection = await this.#parts.operations.connectPort(caller, vmId, port, signal);
      if (connection.destroyed) release();
      else connection.once('close', release);
      return connection;
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Ends every connection. */
  close(): void {
    this.#closing.abort(new ServiceError('shutting_down'));
  }
}
