import type { Socket } from 'node:net';
import { MicrovmError, type MicrovmErrorCode } from '../../microvm-error.ts';

/** The guest may be hostile, so the size of its answers is bounded. */
const MAX_ANSWER_BYTES = 65_536;

const ERROR_CODES: ReadonlySet<string> = new Set<MicrovmErrorCode>([
  'file_not_found',
  'parent_not_found',
  'parent_not_directory',
  'symlink_loop',
  'cwd_not_found',
  'is_directory',
  'not_a_file',
  'disk_full',
  'permission_denied',
  'port_unreachable',
]);

/**
 * Reads one line of JSON and puts the bytes after it back into the socket.
 *
 * @throws MicrovmError with the guest's error code, `internal` for an invalid answer, or `guest_unreachable`
 */
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
      return parseAnswer(received.toString('utf8', 0, end));
    }
    if (received.length > MAX_ANSWER_BYTES) throw protocolViolation();
  }
}

/** The guest violated the protocol of its channel. */
export function protocolViolation(cause?: unknown): MicrovmError {
  return new MicrovmError('internal', 'the guest violated the channel protocol', { cause });
}

/**
 * Reads what has arrived, or waits for it. Leaves the socket as it was, for the next reader.
 *
 * @throws MicrovmError `guest_unreachable`; the reason of the signal
 */
export function readChunk(socket: Socket, signal: AbortSignal): Promise<Buffer> {
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

function parseAnswer(line: string): Readonly<Record<string, unknown>> {
  let answer: unknown;
  try {
    answer = JSON.parse(line);
  } catch (error) {
    throw protocolViolation(error);
  }
  if (typeof answer !== 'object' || answer === null) throw protocolViolation();
  const fields = answer as Readonly<Record<string, unknown>>;
  if (fields.ok === true) return fields;
  const code = String(fields.error);
  const message = String(fields.message).slice(0, 500);
  throw new MicrovmError(isErrorCode(code) ? code : 'internal', message);
}

function isErrorCode(code: string): code is MicrovmErrorCode {
  return ERROR_CODES.has(code);
}
