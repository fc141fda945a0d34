import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  ERRORS,
  type ErrorCode,
  INTERNAL_PREFIX,
  isServiceError,
  makeProblem,
  PORT_PROTOCOL,
  PROBLEM_MEDIA_TYPE,
} from '@svc/contract';
import type { TokenVerifier } from '@svc/service-kit';
import type { SandboxRecords } from './sandbox-records.ts';

const ROUTE = new RegExp(`^${INTERNAL_PREFIX}/sandboxes/([^/]+)/ports/(\\d+)$`);

/** Whether an upgrade asks for a port of a sandbox. */
export function isPortUpgrade({ url = '' }: IncomingMessage): boolean {
  return ROUTE.test(url);
}

/** Connects the ports of sandboxes with servers of the test. */
export class PortSockets {
  /** The port of this machine that stands for a port of every sandbox. */
  readonly servers = new Map<number, number>();
  /** The open connections. */
  readonly open = new Set<Duplex>();
  readonly #records: SandboxRecords;
  readonly #verify: TokenVerifier;

  constructor(records: SandboxRecords, verify: TokenVerifier) {
    this.#records = records;
    this.#verify = verify;
  }

  /** Answers an upgrade for which {@link isPortUpgrade} holds. */
  accept(request: IncomingMessage, socket: Duplex): void {
    socket.on('error', () => socket.destroy());
    this.#admit(request).then(
      (port) => this.#join(port, socket),
      (error: unknown) => refuse(socket, isServiceError(error) ? error.code : 'internal_error'),
    );
  }

  async #admit({ url = '', headers }: IncomingMessage): Promise<number | undefined> {
    await this.#verify(headers.authorization);
    const [, vmId = '', port] = ROUTE.exec(url) ?? [];
    this.#records.running(vmId);
    return this.servers.get(Number(port));
  }

  #join(port: number | undefined, socket: Duplex): void {
    if (port === undefined) {
      refuse(socket, 'port_unreachable');
      return;
    }
    const server = connect({ host: '127.0.0.1', port });
    server.on('error', () => server.destroy());
    server.once('close', () => socket.end());
    socket.once('close', () => {
      this.open.delete(socket);
      server.destroy();
    });
    this.open.add(socket);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${PORT_PROTOCOL}\r\n\r\n`,
    );
    socket.pipe(server);
    server.pipe(socket);
  }
}

function refuse(socket: Duplex, code: ErrorCode): void {
  const body = JSON.stringify(makeProblem(code, 'double'));
  socket.end(
    [
      `HTTP/1.1 ${ERRORS[code].status} No`,
      `content-type: ${PROBLEM_MEDIA_TYPE}`,
      `content-length: ${Buffer.byteLength(body)}`,
      'connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}
