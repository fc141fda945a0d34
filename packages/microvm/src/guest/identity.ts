import { generateKeyPairSync, randomBytes } from 'node:crypto';

/** Bytes of fresh randomness that a restored guest's generator is reseeded with. */
const ENTROPY_BYTES = 256;

/** Everything that makes one clone of a snapshot somebody of its own. */
export interface GuestIdentity {
  readonly hostname: string;
  readonly machineId: string;
  readonly entropy: Buffer;
  /** What the guest's channel asks of every later request. */
  readonly token: string;
  /** The SSH host key: the guest's half in Dropbear's file format, ours in SSH's wire format. */
  readonly hostKey: { readonly file: Buffer; readonly publicKey: Buffer };
}

/** Makes a new identity, from this machine's randomness. */
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
 * An Ed25519 host key. Dropbear's file is the type's name and 64 bytes, the seed and the public key
 * (buf_put_ed25519_priv_key in its ed25519 source); SSH's public form is RFC 8709.
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
