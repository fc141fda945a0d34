import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** What happens to the connections of a TLS listener before their first request. */
export interface HandshakeEvents {
  /** A TCP connection was accepted. */
  accepted?(tcp: Socket): void;
  /** Its TLS handshake is complete. Requests arrive at another socket, which closes with the first. */
  secured(tcp: Socket, tls: Socket): void;
}

/** Whether a server, made by `node:http` or `node:https`, speaks TLS. */
export function speaksTls(listener: Server): boolean {
  return 'setSecureContext' in listener;
}

/** Reports the handshakes of a TLS listener. Node does not tell to which TCP connection a TLS socket belongs; their ends do. */
export function watchHandshakes(listener: Server, events: HandshakeEvents): void {
  const connections = new Map<string, Socket>();
  listener.prependListener('connection', (tcp: Socket) => {
    const ends = endsOf(tcp);
    connections.set(ends, tcp);
    tcp.once('close', () => {
      if (connections.get(ends) === tcp) connections.delete(ends);
    });
    events.accepted?.(tcp);
  });
  listener.prependListener('secureConnection', (tls: Socket) => {
    const tcp = connections.get(endsOf(tls));
    if (tcp !== undefined) events.secured(tcp, tls);
  });
}

/** The ends of a connection, which no other has at the same time. */
function endsOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): string {
  return [localAddress, localPort, remoteAddress, remotePort].join(' ');
}
