import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { MicrovmError, type MicrovmErrorCode } from '../facade.ts';

const RETRY_MS = 5;
/** The guest may be hostile: its answers are bounded. */
const MAX_ANSWER_BYTES = 65_536;

const ERROR_CODES: ReadonlySet<string> = new Set<MicrovmErrorCode>([
  'file_not_found',
  'parent_not_found',
  'is_directory',
  'not_a_file',
  'disk_full',
  'permission_denied',
]);

export interface ChannelAddress {
  readonly host: string;
  readonly port: number;
}

/** Connects to the guest's channel, waiting until the guest listens. */
export async function openChannelConnection(
  { host, port }: ChannelAddress,
  signal: AbortSignal,
): Promise<Socket> {
  for (;;) {
    signal.throwIfAborted();
    const socket = await tryConnect(host, port, signal);
    if (socket !== undefined) return socket;
    await sleep(RETRY_MS, undefined, { signal });
  }
}

function tryConnect(host: string, port: number, signal: AbortSignal): Promise<Socket | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket | undefined>();
  const socket = connect({ host, port, noDelay: true });
  const abort = () => {
    socket.destroy();
    reject(signal.reason);
  };
  signal.addEventListener('abort', abort, { once: true });
  socket.once('connect', () => {
    signal.removeEventListener('abort', abort);
    socket.removeAllListeners('error');
    resolve(socket);
  });
  socket.once('error', (error: NodeJS.ErrnoException) => {
    signal.removeEventListener('abort', abort);
    if (error.code === 'ECONNREFUSED' || error.code === 'ECONNRESET') resolve(undefined);
    else
      reject(
        new MicrovmError('guest_unreachable', 'the guest cannot be reached', { cause: error }),
      );
  });
  return promise;
}

/** Reads one line of JSON; what followed it on the wire is put back. */
export async function readAnswer(
  socket: Socket,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  let received = Buffer.alloc(0);
  for (;;) {
    const chunk = await readChunk(socket, signal);
    received = Buffer.concat([received, chunk]);
    const end = received.indexOf(0x0a);
    if (end >= 0) {
      const rest = received.subarray(end + 1);
      if (rest.length > 0) socket.unshift(rest);
      return checkAnswer(received.toString('utf8', 0, end));
    }
    if (received.length > MAX_ANSWER_BYTES) throw misbehaves();
  }
}

function readChunk(socket: Socket, signal: AbortSignal): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const settle = () => {
    socket.off('readable', tryRead).off('close', closed).off('error', closed);
    signal.removeEventListener('abort', abort);
  };
  const tryRead = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) {
      if (socket.readableEnded || socket.destroyed) closed();
      return;
    }
    settle();
    resolve(chunk);
  };
  const closed = (cause?: unknown) => {
    settle();
    reject(new MicrovmError('guest_unreachable', 'the guest closed its channel', { cause }));
  };
  const abort = () => {
    settle();
    socket.destroy();
    reject(signal.reason);
  };
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  socket.on('readable', tryRead).on('close', closed).on('error', closed);
  tryRead();
  return promise;
}

function checkAnswer(line: string): Readonly<Record<string, unknown>> {
  let answer: unknown;
  try {
    answer = JSON.parse(line);
  } catch (error) {
    throw misbehaves(error);
  }
  if (typeof answer !== 'object' || answer === null) throw misbehaves();
  const fields = answer as Readonly<Record<string, unknown>>;
  if (fields.ok === true) return fields;
  const code = String(fields.error);
  const message = String(fields.message).slice(0, 500);
  throw new MicrovmError(isErrorCode(code) ? code : 'internal', message);
}

function isErrorCode(code: string): code is MicrovmErrorCode {
  return ERROR_CODES.has(code);
}

function misbehaves(cause?: unknown): MicrovmError {
  return new MicrovmError('internal', 'the guest does not speak its protocol', { cause });
}
