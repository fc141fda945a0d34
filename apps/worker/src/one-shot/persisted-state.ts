import { AGENT_LINK_LINE_BYTES, type Agent, ServiceError } from '@svc/contract';
import type { Egress } from '@svc/egress';
import { backoffMs, retry, sleep, untilAborted, withDeadline } from '@svc/service-kit/concurrency';
import { FailureLog } from '@svc/service-kit/logging';
import { GrowingBuffer } from '@svc/service-kit/streams';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import type { AgentCredentials } from '../agents/credentials.ts';
import { parseUntrusted } from '../agents/link/frame-reader.ts';
import { type Clock, timestamp } from '../clock.ts';

export interface PersistedStateOptions {
  readonly egress: Pick<Egress, 'request'>;
  /** The customer's `persistence_url`. */
  readonly url: string;
  /** Read at each request: credentials may be rotated. */
  readonly credentials: Pick<AgentCredentials, 'authorization' | 'known'>;
  readonly sessionId: string | undefined;
  readonly vmId: string;
  readonly agent: Agent;
  readonly clock: Clock;
  /** Called when a state could not be sent, at most once a minute. */
  readonly onFault: (error: unknown, what: string) => void;
}

const REQUEST_MS = 30_000;
/** A state that cannot be sent is reported after every so many attempts. */
const ATTEMPTS_PER_REPORT = 6;
const BACKOFF = { baseMs: 250, maxMs: 10_000 };
/** A state must fit into one line of the agent link. */
const MAX_BYTES = AGENT_LINK_LINE_BYTES / 2;

const stored = Compile(Type.Object({ version: Type.Literal(1), state: Type.String() }));

/** The endpoint refused to store or return the state. */
class PersistenceError extends Error {
  override readonly name = 'PersistenceError';
  readonly status: number;

  constructor(status: number) {
    super(`the persistence endpoint answered ${status}`);
    this.status = status;
  }
}

/** The state is larger than a sandbox can start from. */
class StateTooLarge extends Error {
  override readonly name = 'StateTooLarge';

  constructor() {
    super(`the state is larger than ${MAX_BYTES} bytes and was not sent`);
  }
}

/** The endpoint answered with something other than a state. */
class NotAState extends Error {
  override readonly name = 'NotAState';

  constructor() {
    super('the persistence endpoint answered with something other than a state');
  }
}

/** A state to send. */
interface Unsent {
  readonly state: string;
  readonly onSettled: () => void;
}

/** An agent's state at the customer's URL. Only the newest state is sent, in the background. */
export class PersistedState {
  readonly #options: PersistedStateOptions;
  readonly #closed = new AbortController();
  readonly #faults = new FailureLog();
  #newest: Unsent | undefined;
  #sending: Promise<void> | undefined;

  constructor(options: PersistedStateOptions) {
    this.#options = options;
  }

  /** The state saved last; undefined when there is none. @throws ServiceError `boot_failed` when it cannot be read */
  async fetch(signal: AbortSignal): Promise<string | undefined> {
    try {
      return await retry(() => this.#get(signal), {
        ...BACKOFF,
        attempts: 3,
        signal,
        isTransient,
      });
    } catch (cause) {
      signal.throwIfAborted();
      // A fresh start would overwrite the saved state.
      throw new ServiceError('boot_failed', 'The state at persistence_url cannot be read.', {
        cause,
      });
    }
  }

  /**
   * Sends a state in the background once the credentials are known, as often as it takes; a newer state replaces it. Calls
   * `onSettled` once the endpoint has this state or has refused it for good; neither for a replaced state nor after
   * {@link close}.
   */
  save(state: string, onSettled: () => void): void {
    this.#newest = { state, onSettled };
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
  }

  /** Settles when no state is left to send. Never rejects. */
  async idle(): Promise<void> {
    await this.#sending;
  }

  /** Gives up unsent states. */
  close(): void {
    this.#closed.abort(new Error('the agent is gone'));
  }

  async #send(): Promise<void> {
    const { signal } = this.#closed;
    let failures = 0;
    // Without its header, a restarted worker would have the state refused for good.
    await untilAborted(this.#options.credentials.known, signal).catch(() => undefined);
    while (this.#newest !== undefined && !signal.aborted) {
      const tried = this.#newest;
      try {
        await this.#put(tried.state, signal);
      } catch (error) {
        if (signal.aborted) return;
        const isFinal = !isTransient(error);
        failures += 1;
        if (isFinal || failures % ATTEMPTS_PER_REPORT === 0) {
          const what = 'send a state to its persistence URL';
          this.#faults.note(() => this.#options.onFault(error, what));
        }
        if (!isFinal) {
          await sleep(backoffMs(failures, BACKOFF), signal);
          continue;
        }
      }
      failures = 0;
      if (this.#newest === tried) this.#newest = undefined;
      tried.onSettled();
    }
  }

  async #put(state: string, signal: AbortSignal): Promise<void> {
    const { egress, url, sessionId, vmId, agent, clock } = this.#options;
    const body = JSON.stringify({
      version: 1,
      session_id: sessionId ?? null,
      vm_id: vmId,
      agent,
      saved_at: timestamp(clock.wall()),
      state,
    });
    // The endpoint keeps the earlier state, which a sandbox can start from; it could not start from this one.
    if (Buffer.byteLength(body) > MAX_BYTES) throw new StateTooLarge();
    const response = await egress.request(url, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', ...this.#authorization() },
      body,
      signal: withDeadline(signal, REQUEST_MS),
    });
    await response.body.dump();
    if (response.statusCode >= 300) throw new PersistenceError(response.statusCode);
  }

  async #get(signal: AbortSignal): Promise<string | undefined> {
    const { egress, url } = this.#options;
    const response = await egress.request(url, {
      method: 'GET',
      headers: this.#authorization(),
      signal: withDeadline(signal, REQUEST_MS),
    });
    if (response.statusCode !== 200) {
      await response.body.dump();
      if (response.statusCode === 404 || response.statusCode === 204) return undefined;
      throw new PersistenceError(response.statusCode);
    }
    const collected = new GrowingBuffer(MAX_BYTES);
    // Leaving the loop destroys the body.
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      if (!collected.append(chunk)) throw new ServiceError('payload_too_large');
    }
    const value = parseUntrusted(collected.take());
    if (!stored.Check(value)) throw new NotAState();
    return value.state;
  }

  #authorization(): { authorization?: string } {
    const value = this.#options.credentials.authorization;
    return value === undefined ? {} : { authorization: value.reveal() };
  }
}

function isTransient(error: unknown): boolean {
  if (error instanceof PersistenceError) {
    return error.status >= 500 || error.status === 408 || error.status === 429;
  }
  const refused = error instanceof Error && 'code' in error && error.code === 'egress_refused';
  const isFinal = [StateTooLarge, NotAState, ServiceError].some((kind) => error instanceof kind);
  return !(refused || isFinal);
}
