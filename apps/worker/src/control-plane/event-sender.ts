import type { WorkerSandbox } from '@svc/contract';
import type { Clock } from '../clock.ts';
import type { WorkerLogger } from '../logger.ts';
import { type ControlPlaneClient, isNotRegistered } from './control-plane-client.ts';
import { ControlPlaneError } from './control-plane-transport.ts';
import { EventQueue } from './event-queue.ts';

interface EventSenderParts {
  readonly client: Pick<ControlPlaneClient, 'sendEvents'>;
  readonly logger: Pick<WorkerLogger, 'debug'>;
  readonly clock: Pick<Clock, 'monotonic'>;
}

/** Sends the changes of sandboxes to the control plane, in batches and in order. */
export class EventSender {
  readonly #client: Pick<ControlPlaneClient, 'sendEvents'>;
  readonly #logger: Pick<WorkerLogger, 'debug'>;
  readonly #queue: EventQueue;

  constructor({ client, logger, clock }: EventSenderParts) {
    this.#client = client;
    this.#logger = logger;
    this.#queue = new EventQueue(clock);
  }

  /** Whether events are waiting to be sent. */
  get isPending(): boolean {
    return this.#queue.size > 0;
  }

  push(record: WorkerSandbox): void {
    this.#queue.push(record);
  }

  /**
   * Sends one batch. After a failure it stays queued, unless the control plane rejected its content; `not_registered`
   * means that this worker has to register again. Never rejects.
   */
  async send(signal: AbortSignal): Promise<'sent' | 'failed' | 'not_registered'> {
    const batch = this.#queue.batch();
    try {
      await this.#client.sendEvents(batch.body, signal);
      batch.acknowledge();
      return 'sent';
    } catch (error) {
      this.#logger.debug({ err: error }, 'could not send events');
      // Rejected events would be rejected again. The next heartbeat reports the same state.
      if (isRejected(error)) batch.acknowledge();
      return isNotRegistered(error) ? 'not_registered' : 'failed';
    }
  }
}

function isRejected(error: unknown): boolean {
  return error instanceof ControlPlaneError && [400, 413, 415].includes(error.status);
}
