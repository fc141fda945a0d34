import { hkdfSync } from 'node:crypto';
import { deriveControlPlaneKey, type KeyPair, type Secret } from '@svc/service-kit';

/** The cluster secret, and the one that it replaces or that replaces it. The first signs, each verifies. */
export type ClusterSecrets = readonly [Secret, ...Secret[]];

/** The keys of one purpose, in the order of the secrets. */
export type DerivedKeys = readonly [Buffer, ...Buffer[]];

/** The key pairs of control planes, in the order of the secrets. */
export async function deriveKeyPairs([first, ...others]: ClusterSecrets): Promise<
  readonly [KeyPair, ...KeyPair[]]
> {
  return [
    await deriveControlPlaneKey(first),
    ...(await Promise.all(others.map(deriveControlPlaneKey))),
  ];
}

/** Derives the keys of one purpose from the cluster secrets. Every replica derives the same ones. */
export function deriveKeys([first, ...others]: ClusterSecrets, purpose: string): DerivedKeys {
  const derive = (secret: Secret) =>
    Buffer.from(hkdfSync('sha256', secret.reveal(), '', purpose, 32));
  return [derive(first), ...others.map(derive)];
}
