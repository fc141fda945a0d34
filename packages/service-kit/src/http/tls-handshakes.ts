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

/** Reports the handshakes of a TLS listener. Node does not tell to which TCP connection a TLS socket belongs; its peer does. */
export function watchHandshakes(listener: Server, events: HandshakeEvents): void {
  const connections = new Map<string, Socket>();
  listener.prependListener('connection', (tcp: Socket) => {
    const peer = peerOf(tcp);
    connections.set(peer, tcp);
    tcp.once('close', () => {
      if (connections.get(peer) === tcp) connections.delete(peer);
    });
    events.accepted?.(tcp);
  });
  listener.prependListener('secureConnection', (tls: Socket) => {
    const tcp = connections.get(peerOf(tls));
    if (tcp !== undefined) events.secured(tcp, tls);
  });
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
