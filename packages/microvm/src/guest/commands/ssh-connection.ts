import {
  SingleFlight,
  sleep,
  TokenBucket,
  untilAborted,
  withDeadline,
} from '@svc/service-kit/concurrency';
import { Client } from 'ssh2';
import { MicrovmError } from '../../microvm-error.ts';
import { disconnect, holdToLimits, isOverdue } from './ssh-limits.ts';
import { type StartedCommand, startedCommand } from './started-command.ts';

const CONNECT_MS = 30_000;
const OPEN_MS = 30_000;
const RETRY_PAUSE_MS = 50;
const MIB = 1024 * 1024;
/**
 * The rate at which one guest is read, so that a flood from it does not starve the others. The burst is what an honest
 * command with much output sends at its full speed.
 */
const READ_RATE = { perSecond: 64 * MIB, burst: 256 * MIB };

export interface SshConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly privateKey: string;
  /** The guest's host key, in SSH's wire format. Any other key is refused. */
  readonly hostKey: Buffer;
  /** Limits what is read of the guest; shared by all connections to it. */
  readonly readRate?: Pick<TokenBucket, 'spend'>;
}

/** One SSH connection to the guest, kept open, and reopened after the guest has dropped it. */
export class SshConnection {
  readonly #options: Required<SshConnectionOptions>;
  readonly #connecting = new SingleFlight<Client>();
  readonly #closing = new AbortController();
  #client: Client | undefined;

  constructor(options: SshConnectionOptions) {
    this.#options = { ...options, readRate: options.readRate ?? new TokenBucket(READ_RATE) };
  }

  /**
   * Connects unless connected. Settles when the guest has proved its host key: authentication continues, and the first
   * command waits for it. Throws `guest_unreachable` when the guest does not answer in time.
   */
  async connect(signal: AbortSignal): Promise<void> {
    const answered = Promise.withResolvers<void>();
    await Promise.race([this.#ready(signal, answered.resolve), answered.promise]);
  }

  /**
   * Starts a command. Several commands can run at the same time on the connection. If the guest drops the connection
   * before it accepts the command, one retry follows on a new connection.
   */
  async exec(command: string, signal: AbortSignal): Promise<StartedCommand> {
    const client = await this.#ready(signal);
    try {
      return await start(client, command, withDeadline(signal, OPEN_MS));
    } catch (error) {
      if (signal.aborted || this.#closing.signal.aborted || this.#client === client) throw error;
    }
    return start(await this.#ready(signal), command, withDeadline(signal, OPEN_MS));
  }

  close(): void {
    this.#closing.abort(new MicrovmError('vm_gone', 'the sandbox has ended'));
    this.#drop();
  }

  #drop(): void {
    if (this.#client !== undefined) disconnect(this.#client);
    this.#client = undefined;
  }

  /** Calls `onHandshake` only if this call opens the connection. */
  async #ready(signal: AbortSignal, onHandshake?: () => void): Promise<Client> {
    this.#closing.signal.throwIfAborted();
    if (this.#client !== undefined && isOverdue(this.#client)) this.#drop();
    if (this.#client !== undefined) return this.#client;
    // Checked before the attempt begins: without a caller, its failure would be an unhandled rejection.
    signal.throwIfAborted();
    return untilAborted(
      this.#connecting.run(() => this.#open(onHandshake)),
      signal,
    );
  }

  /** Several callers may await one attempt, so it has a deadline of its own instead of a caller's signal. */
  async #open(onHandshake: () => void = () => undefined): Promise<Client> {
    const deadline = performance.now() + CONNECT_MS;
    for (;;) {
      try {
        const timeoutMs = deadline - performance.now();
        const client = await connectOnce(
          { ...this.#options, onHandshake },
          timeoutMs,
          this.#closing.signal,
        );
        this.#client = client;
        client.once('close', () => {
          if (this.#client === client) this.#client = undefined;
        });
        return client;
      } catch (error) {
        if (this.#closing.signal.aborted || performance.now() + RETRY_PAUSE_MS > deadline) {
          throw unreachable('connect to the guest', error);
        }
        // When close() ends the pause early, the next attempt throws its reason.
        await sleep(RETRY_PAUSE_MS, this.#closing.signal);
      }
    }
  }
}

async function connectOnce(
  options: Required<SshConnectionOptions> & { readonly onHandshake: () => void },
  readyTimeout: number,
  closing: AbortSignal,
): Promise<Client> {
  closing.throwIfAborted();
  const { host, port, privateKey, hostKey, readRate } = options;
  const { promise, resolve, reject } = Promise.withResolvers<Client>();
  const client = new Client();
  const abort = () => {
    disconnect(client);
    reject(closing.reason);
  };
  closing.addEventListener('abort', abort, { once: true });
  client.once('handshake', options.onHandshake);
  client.once('ready', () => resolve(client));
  // Many small packets follow each other. None may wait for the acknowledgement of the previous one.
  client.once('connect', () => client.setNoDelay(true));
  // Errors also occur after `ready`. The close event that follows reports them.
  client.on('error', (error) => {
    disconnect(client);
    reject(error);
  });
  client.once('close', () => reject(new Error('the guest closed the connection')));
  try {
    // Throws synchronously when the private key cannot be parsed.
    client.connect({
      host,
      port,
      username: 'root',
      readyTimeout: Math.max(1, readyTimeout),
      // Trying without a key first would cost a round trip.
      authHandler: ['publickey'],
      privateKey,
      // Compressed, a small packet could become a huge one.
      algorithms: {
        serverHostKey: ['ssh-ed25519'],
        kex: ['curve25519-sha256'],
        compress: ['none'],
      },
      hostVerifier: (key: Buffer) => key.equals(hostKey),
    });
    holdToLimits(client, readRate);
    return await promise;
  } finally {
    closing.removeEventListener('abort', abort);
  }
}

async function start(
  client: Client,
  command: string,
  deadline: AbortSignal,
): Promise<StartedCommand> {
  const { promise, resolve, reject } = Promise.withResolvers<StartedCommand>();
  const abort = () => reject(deadline.reason);
  deadline.addEventListener('abort', abort, { once: true });
  client.exec(command, (error, channel) => {
    if (error !== undefined) {
      reject(unreachable('start the command', error));
      return;
    }
    // Without a listener from here on, a failure would end this process, with the sandboxes of everybody.
    for (const stream of [channel, channel.stderr]) stream.on('error', () => disconnect(client));
    if (deadline.aborted) {
      channel.stderr.resume();
      channel.resume().close();
    } else resolve(startedCommand(channel));
  });
  try {
    return await promise;
  } finally {
    deadline.removeEventListener('abort', abort);
  }
}

function unreachable(action: string, cause: unknown): MicrovmError {
  if (cause instanceof MicrovmError) return cause;
  const message = cause instanceof Error ? cause.message : String(cause);
  return new MicrovmError('guest_unreachable', `cannot ${action}: ${message}`, { cause });
}
