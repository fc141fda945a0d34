/** Ed25519 key pairs, with which the components of a fleet sign their tokens. */

import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import type { PublicKey } from '@svc/contract';
import { calculateJwkThumbprint } from 'jose';
import { Secret } from '../secret.ts';

/** The DER encoding of a PKCS#8 Ed25519 private key before its 32 bytes (RFC 8410, section 7). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

/** A key pair. `id` is the thumbprint of its public key (RFC 7638). */
export interface KeyPair {
  readonly id: string;
  readonly privateKey: KeyObject;
  readonly publicKey: PublicKey;
}

/** A worker or a runtime host, and the key with which it proves to be it. */
export interface ComponentIdentity {
  readonly id: string;
  readonly key: KeyPair;
}

export function generateKeyPair(): Promise<KeyPair> {
  return pairOf(generateKeyPairSync('ed25519').privateKey);
}

/** The key pair that all control planes of a fleet share, derived from its cluster secret. */
export function deriveControlPlaneKey(secret: Secret): Promise<KeyPair> {
  const purpose = 'svc control plane key v1';
  const seed = Buffer.from(hkdfSync('sha256', secret.reveal(), '', purpose, 32));
  const der = Buffer.concat([PKCS8_PREFIX, seed]);
  return pairOf(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }));
}

/** Reads a private key in PEM. @throws for one that is malformed, or not an Ed25519 key */
export function parseKeyPair(pem: Secret): Promise<KeyPair> {
  const key = createPrivateKey(pem.reveal());
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('not an Ed25519 key');
  return pairOf(key);
}

/** The private key in PEM (PKCS#8), with the public one in it. */
export function formatKeyPair({ privateKey }: KeyPair): Secret {
  return new Secret(privateKey.export({ format: 'pem', type: 'pkcs8' }).toString());
}

/** The thumbprint of a public key. */
export function keyIdOf(key: PublicKey): Promise<string> {
  return calculateJwkThumbprint(key, 'sha256');
}

async function pairOf(privateKey: KeyObject): Promise<KeyPair> {
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' });
  const publicKey: PublicKey = { kty: 'OKP', crv: 'Ed25519', x };
  return { id: await keyIdOf(publicKey), privateKey, publicKey };
}
