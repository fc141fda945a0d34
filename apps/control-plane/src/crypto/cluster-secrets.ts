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
  readonly #keyPairs: [KeyPair, ...KeyPair[]];
  /** Derive again what was derived. */
  readonly #refreshes: (() => void)[] = [];
  #secrets: Secrets;

  private constructor(secrets: Secrets, keyPairs: ControlPlaneKeys) {
    this.#secrets = secrets;
    this.#keyPairs = [...keyPairs];
  }

  static async open(secrets: Secrets): Promise<ClusterSecrets> {
    return new ClusterSecrets(secrets, await keyPairsOf(secrets));
  }

  get keyPairs(): ControlPlaneKeys {
    return this.#keyPairs;
  }

  /** The keys of a purpose. Every control plane derives the same ones. */
  keysFor(purpose: string): DerivedKeys {
    return this.derive((secret) =>
      Buffer.from(hkdfSync('sha256', secret.reveal(), '', purpose, 32)),
    );
  }

  /** What is derived from each secret, in their order. The array changes when they do. */
  derive<T>(from: (secret: Secret) => T): readonly [T, ...T[]] {
    const derived = (): [T, ...T[]] => {
      const [first, ...others] = this.#secrets;
      return [from(first), ...others.map(from)];
    };
    const current = derived();
    this.#refreshes.push(() => fill(current, derived()));
    return current;
  }

  /** Replaces the secrets, and with them the contents of all keys that were derived from them. Returns whether they differ. */
  async replace(secrets: Secrets): Promise<boolean> {
    const textOf = (all: Secrets) => JSON.stringify(all.map((secret) => secret.reveal()));
    if (textOf(secrets) === textOf(this.#secrets)) return false;
    const keyPairs = await keyPairsOf(secrets);
    this.#secrets = secrets;
    fill(this.#keyPairs, keyPairs);
    for (const refresh of this.#refreshes) refresh();
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
