import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import ssh2 from 'ssh2';
import { SshConnection } from '../src/guest/commands/ssh-connection.ts';

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
  /** Gets a line for each packet. */
  readonly debug?: (line: string) => void;
}

/** Starts the server. Every command that the connection sends goes to `onExec`. */
export async function startSshGuest({ onExec, debug }: SshGuestOptions): Promise<SshGuest> {
  const hostKey = ssh2.utils.generateKeyPairSync('ed25519');
  const userKey = ssh2.utils.generateKeyPairSync('ed25519');
  const hostKeys = [hostKey.private];
  const options = debug === undefined ? { hostKeys } : { hostKeys, debug };
  const guest = new ssh2.Server(options, (client) => {
    client.on('authentication', (attempt) => attempt.accept());
    client.on('session', (acceptSession) => {
      acceptSession().on('exec', (accept, _reject, { command }) => onExec(accept(), command));
    });
    client.on('error', () => client.end());
  });
  const server = createServer({ noDelay: true }, (socket) => guest.injectSocket(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const parsed = ssh2.utils.parseKey(hostKey.public);
  if (parsed instanceof Error) throw parsed;
  const connection = new SshConnection({
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    privateKey: userKey.private,
    hostKey: parsed.getPublicSSH(),
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
