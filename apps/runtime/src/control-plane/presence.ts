import { randomUUID } from 'node:crypto';
import { INTERNAL_PREFIX, RUNTIME_HOST_REPORT_MS } from '@svc/contract';
import { sleep, withDeadline } from '@svc/service-kit/concurrency';
import type { FastifyBaseLogger } from 'fastify';
import type { ControlPlaneConnection } from './connection.ts';

const DEADLINE_MS = 5_000;
const LEAVE_MS = 2_000;

/** Tells the operator, through the control plane, that this runtime host is alive. Nothing else depends on it. */
export class Presence {
  readonly #connection: ControlPlaneConnection;
  readonly #name: string;
  readonly #logger: FastifyBaseLogger;
  readonly #path = `${INTERNAL_PREFIX}/runtime-hosts/${randomUUID()}`;
  readonly #closing = new AbortController();
  readonly #loop: Promise<void>;
  /** Whether a control plane has ever accepted a report. */
  #isKnown = false;

  /** @param name what the operator knows this runtime host by */
  constructor(connection: ControlPlaneConnection, name: string, logger: FastifyBaseLogger) {
    this.#connection = connection;
    this.#name = name;
    this.#logger = logger;
    this.#loop = this.#run(this.#closing.signal);
  }

  /** Says that this runtime host ends in order. Waits for the answer a short while; never rejects. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#loop;
    if (this.#isKnown) await this.#send('DELETE', AbortSignal.timeout(LEAVE_MS));
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#send('PUT', withDeadline(signal, DEADLINE_MS));
      await sleep(RUNTIME_HOST_REPORT_MS, signal, { ref: false });
    }
  }

  async #send(method: 'PUT' | 'DELETE', signal: AbortSignal): Promise<void> {
    const name = `${method} /runtime-hosts/{id}`;
    const json = method === 'PUT' ? { json: { name: this.#name } } : {};
    try {
      const call = { method, path: this.#path, name, ...json, signal };
      const { status } = await this.#connection.send(call);
      // A control plane of an earlier version does not know this call.
      if (status < 300) this.#isKnown = true;
      else this.#logger.debug({ status }, 'the control plane refused a report');
    } catch (err) {
      this.#logger.debug({ err }, 'cannot tell the control plane that this runtime host is alive');
    }
  }
}
