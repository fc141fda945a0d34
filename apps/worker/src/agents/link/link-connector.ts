import type { AgentSetup } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import {
  type Budget,
  backoffMs,
  sleep,
  TokenBucket,
  withDeadline,
} from '@svc/service-kit/concurrency';
import { LinkConnection } from './link-connection.ts';

const MIB = 1024 * 1024;
/** The rate at which one guest is read, so that a flood from it does not starve the others. */
const READ_RATE = { perSecond: 16 * MIB, burst: 64 * MIB };
const DIAL_BACKOFF = { baseMs: 20, maxMs: 500 };

export interface LinkConnectorOptions {
  readonly vm: Pick<Microvm, 'dialAgent'>;
  /** Authenticates this worker to the runtime. */
  readonly token: string;
  /** For what the links to all guests of the account hold, in bytes. */
  readonly held: Budget;
  /** The longest wait for the rest of a line of the guest, in milliseconds. Default: one minute. */
  readonly lineMs?: number;
  /** For one connection, including its handshake. */
  readonly dialMs: number;
}

/** Opens connections to the agent runtime of one VM, and performs the handshake on them. */
export class LinkConnector {
  readonly #options: LinkConnectorOptions;
  readonly #readRate = new TokenBucket(READ_RATE);

  constructor(options: LinkConnectorOptions) {
    this.#options = options;
  }

  /**
   * Configures a fresh runtime; dials until it answers.
   * @throws MicrovmError, or the signal's reason, when the runtime does not become ready
   */
  async configure(setup: AgentSetup, signal: AbortSignal): Promise<LinkConnection> {
    const connection = await this.#dialUntilOpen(signal);
    try {
      connection.send({ type: 'configure', token: this.#options.token, setup });
      await connection.expect('configured', signal);
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /**
   * Reconnects to a configured runtime, in one attempt. The guest sends its messages after `lastN` again, and
   * answers with the number of the last client frame that it has received.
   * @throws MicrovmError, LineProtocolError, the socket's error or the signal's reason
   */
  async attach(
    lastN: number,
    signal: AbortSignal,
  ): Promise<{ readonly connection: LinkConnection; readonly received: number }> {
    const bounded = withDeadline(signal, this.#options.dialMs);
    const connection = await this.#dial(bounded);
    try {
      connection.send({ type: 'attach', token: this.#options.token, after: lastN });
      const { c } = await connection.expect('attached', bounded);
      return { connection, received: c };
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** Right after a restore, the guest may not listen yet and its network may not carry packets yet. */
  async #dialUntilOpen(signal: AbortSignal): Promise<LinkConnection> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#dial(withDeadline(signal, this.#options.dialMs));
      } catch (error) {
        if (signal.aborted) throw error;
      }
      await sleep(backoffMs(attempt, DIAL_BACKOFF), signal);
      signal.throwIfAborted();
    }
  }

  async #dial(signal: AbortSignal): Promise<LinkConnection> {
    const socket = await this.#options.vm.dialAgent(signal);
    return new LinkConnection(socket, { ...this.#options, readRate: this.#readRate });
  }
}
