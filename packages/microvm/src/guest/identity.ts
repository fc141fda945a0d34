import { generateKeyPairSync, randomBytes } from 'node:crypto';

/** Number of random bytes that reseed the generator of a restored guest. */
const ENTROPY_BYTES = 256;

/** Everything that distinguishes one clone of a snapshot from the others. */
export interface GuestIdentity {
  readonly hostname: string;
  readonly machineId: string;
  readonly entropy: Buffer;
  /** Token that every later request on the guest channel must carry. */
  readonly token: string;
  /** The SSH host key: the private key in Dropbear's file format, the public key in SSH's wire format. */
  readonly hostKey: { readonly file: Buffer; readonly publicKey: Buffer };
}

/** Creates an identity with this machine's random number generator. */
export function createIdentity(hostname: string): GuestIdentity {
  return {
    hostname,
    machineId: randomBytes(16).toString('hex'),
    entropy: randomBytes(ENTROPY_BYTES),
    token: randomBytes(32).toString('base64url'),
    hostKey: createHostKey(),
  };
}

const ED25519 = Buffer.from('ssh-ed25519');

/**
 * Generates an Ed25519 host key. Dropbear's file holds the name of the key type and 64 bytes: the seed and the public
 * key (buf_put_ed25519_priv_key in its source). The public format is defined in RFC 8709.
 */
function createHostKey(): GuestIdentity['hostKey'] {
  const { privateKey } = generateKeyPairSync('ed25519');
  const { d = '', x = '' } = privateKey.export({ format: 'jwk' });
  const seed = Buffer.from(d, 'base64url');
  const point = Buffer.from(x, 'base64url');
  return {
    file: Buffer.concat([sshString(ED25519), sshString(Buffer.concat([seed, point]))]),
    publicKey: Buffer.concat([sshString(ED25519), sshString(point)]),
  };
}

function sshString(data: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  return Buffer.concat([length, data]);
}
