import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { MicrovmError } from '../../microvm-error.ts';

const CONNECT_PAUSE_MS = 2;
/** QEMU's answers to the commands used here are small. A longer line is not from a genuine QEMU. */
const MAX_LINE_BYTES = 1 << 20;

interface PendingCommand {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

interface Message {
  readonly return?: unknown;
  readonly error?: { readonly desc?: unknown } | null;
  readonly event?: string;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly id?: number;
}

/**
 * A client for QEMU's control socket (QMP).
 * https://www.qemu.org/docs/master/interop/qmp-spec.html
 */
export class Qmp {
  /** Settles (never rejects) when either side has closed the connection. */
  readonly closed: Promise<void>;
  /** Called for every event from QEMU. */
  onEvent: (event: string, data: Readonly<Record<string, unknown>>) => void = () => undefined;
  readonly #socket: Socket;
  readonly #pending = new Map<number, PendingCommand>();
  #nextId = 1;
  #buffer = '';

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => this.#receive(text));
    // The close event follows and rejects all pending commands.
    socket.on('error', () => socket.destroy());
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        for (const { reject } of this.#pending.values()) reject(gone());
        this.#pending.clear();
        resolve();
      });
    });
  }

  /** Connects as soon as the socket exists, and enters command mode. */
  static async open(path: string, signal: AbortSignal): Promise<Qmp> {
    const qmp = new Qmp(await connectWhenReady(path, signal));
    try {
      await qmp.execute('qmp_capabilities', {}, signal);
      return qmp;
    } catch (error) {
      qmp.close();
      throw error;
    }
  }

  /** Runs one command and returns its answer. Throws `internal` with QEMU's message, or `vm_gone`. */
  async execute(
    command: string,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<unknown> {
    signal.throwIfAborted();
    if (this.#socket.destroyed) throw gone();
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    this.#pending.set(id, { resolve, reject });
    this.#socket.write(`${JSON.stringify({ execute: command, arguments: args, id })}\n`);
    try {
      return await promise;
    } finally {
      signal.removeEventListener('abort', abort);
      this.#pending.delete(id);
    }
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(text: string): void {
    this.#buffer += text;
    const lines = this.#buffer.split('\n');
    this.#buffer = lines.pop() ?? '';
    if (this.#buffer.length > MAX_LINE_BYTES) this.#socket.destroy();
    for (const line of lines) this.#dispatch(line);
  }

  #dispatch(line: string): void {
    const message = parse(line);
    if (message === undefined) {
      this.#socket.destroy();
      return;
    }
    if (message.event !== undefined) {
      this.onEvent(message.event, message.data ?? {});
      return;
    }
    const pending = message.id === undefined ? undefined : this.#pending.get(message.id);
    if (message.error === undefined) {
      pending?.resolve(message.return);
      return;
    }
    // Other values than texts may throw when they are made one, and nothing would catch that here.
    const desc = message.error?.desc;
    const problem = typeof desc === 'string' ? desc : 'failed';
    pending?.reject(new MicrovmError('internal', `QEMU: ${problem}`));
  }
}

/** Validates a message: its sender is a confined process that an attacker may control. */
function parse(line: string): Message | undefined {
  try {
    const message: unknown = JSON.parse(line);
    return typeof message === 'object' && message !== null ? message : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

async function connectWhenReady(path: string, signal: AbortSignal): Promise<Socket> {
  for (;;) {
    signal.throwIfAborted();
    const socket = await tryConnect(path);
    if (socket !== undefined) return socket;
    await sleep(CONNECT_PAUSE_MS, undefined, { signal });
  }
}

function tryConnect(path: string): Promise<Socket | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket | undefined>();
  const socket = connect(path);
  socket.once('connect', () => {
    resolve(socket);
  });
  // This listener stays: QEMU may fail before the next owner listens, and `close` follows.
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') resolve(undefined);
    else reject(error);
  });
  return promise;
}

function gone(): MicrovmError {
  return new MicrovmError('vm_gone', 'the VM process is gone');
}
