import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';

const PREFIX = 'ed25519:';
/** 32 bytes in base64url, whose last character has two unused bits. */
const PUBLIC_KEY = /^ed25519:([A-Za-z0-9_-]{42}[AEIMQUYcgkosw048])$/;

/** Makes the key with which an operator signs images: the private key as PEM (PKCS #8), and the public key as text. */
export function createImageSigningKey(): {
  readonly privateKey: string;
  readonly publicKey: string;
} {
  const { privateKey } = generateKeyPairSync('ed25519');
  return {
    privateKey: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
    publicKey: publicKeyText(privateKey),
  };
}

/** Reads a private key as {@link createImageSigningKey} makes it. @throws Error for any other text or kind of key */
export function readImageSigningKey(pem: string): KeyObject {
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('the key is no Ed25519 key');
  return key;
}

/** The public key that belongs to a private one, as the settings of workers name it. */
export function publicKeyText(privateKey: KeyObject): string {
  return `${PREFIX}${createPublicKey(privateKey).export({ format: 'jwk' }).x}`;
}

/** A public key from its text. @throws Error for any other text */
export function parsePublicKey(text: string): KeyObject {
  const [, x] = PUBLIC_KEY.exec(text) ?? [];
  if (x === undefined) throw new Error('the text is no public Ed25519 key');
  return createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } });
}
