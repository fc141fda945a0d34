import { hkdfSync } from 'node:crypto';
import { deriveControlPlaneKey, type KeyPair, type Secret } from '@svc/service-kit';

/** The keys of one purpose, in the order of the secrets. They change when the secrets do. */
export type DerivedKeys = readonly [Buffer, ...Buffer[]];

/** The key pairs of control planes, in the order of the secrets. They change when the secrets do. */
export type ControlPlaneKeys = readonly [KeyPair, ...KeyPair[]];

type Secrets = readonly [Secret, ...Secret[]];

/**
 * The secrets that all control planes share, and nobody else has: the cluster secret, and those that it replaces or that
 * replace it. The first signs, each verifies. They can be replaced while requests are served.
 */
export class ClusterSecrets {
  readonly #derived = new Map<string, [Buffer, ...Buffer[]]>();
  readonly #secrets: [Secret, ...Secret[]];
  readonly #keyPairs: [KeyPair, ...KeyPair[]];

  private constructor(secrets: Secrets, keyPairs: ControlPlaneKeys) {
    this.#secrets = [...secrets];
    this.#keyPairs = [...keyPairs];
  }

  static async open(secrets: Secrets): Promise<ClusterSecrets> {
    return new ClusterSecrets(secrets, await keyPairsOf(secrets));
  }

  /** The secrets themselves. The array changes with them. */
  get all(): Secrets {
    return this.#secrets;
  }

  get keyPairs(): ControlPlaneKeys {
    return this.#keyPairs;
  }

  /** The keys of a purpose. Every control plane derives the same ones. */
  keysFor(purpose: string): DerivedKeys {
    const known = this.#derived.get(purpose);
    if (known !== undefined) return known;
    const keys = keysOf(this.#secrets, purpose);
    this.#derived.set(purpose, keys);
    return keys;
  }

  /** Replaces the secrets, and with them the contents of all keys that were derived from them. Returns whether they differ. */
  async replace(secrets: Secrets): Promise<boolean> {
    const textOf = (all: Secrets) => JSON.stringify(all.map((secret) => secret.reveal()));
    if (textOf(secrets) === textOf(this.#secrets)) return false;
    const keyPairs = await keyPairsOf(secrets);
    fill(this.#secrets, secrets);
    fill(this.#keyPairs, keyPairs);
    for (const [purpose, keys] of this.#derived) fill(keys, keysOf(secrets, purpose));
    return true;
  }
}

function fill<T>(array: T[], items: readonly T[]): void {
  array.splice(0, array.length, ...items);
}

async function keyPairsOf([first, ...others]: Secrets): Promise<ControlPlaneKeys> {
  return [
    await deriveControlPlaneKey(first),
    ...(await Promise.all(others.map(deriveControlPlaneKey))),
  ];
}

function keysOf([first, ...others]: Secrets, purpose: string): [Buffer, ...Buffer[]] {
  const derive = (secret: Secret) =>
    Buffer.from(hkdfSync('sha256', secret.reveal(), '', purpose, 32));
  return [derive(first), ...others.map(derive)];
}
