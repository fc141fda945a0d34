import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import ssh2 from 'ssh2';
import { SshConnection, type SshConnectionOptions } from '../src/guest/commands/ssh-connection.ts';

/** An SSH server in this process in the place of a guest's, and the connection to it. */
export interface SshGuest {
  readonly connection: SshConnection;
  /** The key that the server accepts, in OpenSSH's format. */
  readonly privateKey: string;
  close(): void;
}

export interface SshGuestOptions {
  /** Runs a command. */
  readonly onExec: (channel: ssh2.ServerChannel, command: string) => void;
  /** Gets what sends any packet, as soon as a command is requested and before it is accepted. */
  readonly onRequest?: (peer: RawPeer) => void;
  /** Gets a line for each packet. */
  readonly debug?: (line: string) => void;
  /** Limits what the connection reads. */
  readonly readRate?: SshConnectionOptions['readRate'];
  /** Further settings of the server. */
  readonly server?: Partial<ssh2.ServerConfig>;
}

/** The end of a connection that keeps to no rule: it sends what it is told to, when it is told to. */
export interface RawPeer {
  readonly socket: Socket;
  /** The client's number of the channel of the command. */
  readonly id: number;
  readonly protocol: RawProtocol;
}

/** What `ssh2` uses to send packets. */
export interface RawProtocol {
  channelData(id: number, data: Buffer): void;
  channelExtData(id: number, data: Buffer, type: number): void;
  channelEOF(id: number): void;
  channelWindowAdjust(id: number, bytes: number): void;
  channelOpenConfirm(id: number, own: number, window: number, packetSize: number): void;
  disconnect(reason: number): void;
  /** A global request that wants a reply. */
  ping(): void;
  /** Exchanges keys again. */
  rekey(): void;
  readonly _cipher: { encrypt(packet: Buffer): void };
  readonly _packetRW: {
    readonly write: {
      readonly allocStart: number;
      alloc(bytes: number): Buffer;
      finalize(packet: Buffer): Buffer;
    };
  };
}

/** Sends a packet with any content. */
export function sendPacket({ _cipher, _packetRW: { write } }: RawProtocol, payload: Buffer): void {
  const start = write.allocStart;
  const packet = write.alloc(payload.length);
  packet.set(payload, start);
  _cipher.encrypt(write.finalize(packet));
}

/** Starts the server. Every command that the connection sends goes to `onExec`. */
export async function startSshGuest(options: SshGuestOptions): Promise<SshGuest> {
  const { onExec, onRequest, debug, readRate } = options;
  const hostKey = generateUsableKey();
  const userKey = generateUsableKey();
  const config = { ...options.server, hostKeys: [hostKey.private] };
  const guest = new ssh2.Server(debug === undefined ? config : { ...config, debug }, (client) => {
    client.on('authentication', (attempt) => attempt.accept());
    client.on('session', (acceptSession) => {
      const session = acceptSession();
      session.on('exec', (accept, _reject, { command }) => {
        onRequest?.(rawPeer(client, session));
        onExec(accept(), command);
      });
    });
    client.on('error', () => client.end());
  });
  const server = createServer({ noDelay: true }, (socket) => guest.injectSocket(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connection = new SshConnection({
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    privateKey: userKey.private,
    hostKey: hostKey.publicSsh,
    ...(readRate && { readRate }),
  });
  return {
    connection,
    privateKey: userKey.private,
    close: () => {
      connection.close();
      server.close();
    },
  };
}

/** About one in a hundred keys that the library generates is one it cannot parse. */
function generateUsableKey(): { readonly private: string; readonly publicSsh: Buffer } {
  for (;;) {
    const { private: key } = ssh2.utils.generateKeyPairSync('ed25519');
    const parsed = ssh2.utils.parseKey(key);
    if (!(parsed instanceof Error)) return { private: key, publicSsh: parsed.getPublicSSH() };
  }
}

function rawPeer(client: ssh2.Connection, session: ssh2.Session): RawPeer {
  const { _sock, _protocol } = client as unknown as { _sock: Socket; _protocol: RawProtocol };
  const { _chanInfo } = session as unknown as { _chanInfo: { outgoing: { id: number } } };
  return { socket: _sock, protocol: _protocol, id: _chanInfo.outgoing.id };
}
