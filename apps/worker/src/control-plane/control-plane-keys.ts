import { KeySet } from '@svc/contract';
import type { KeyFinder } from '@svc/service-kit';
import { SingleFlight } from '@svc/service-kit/concurrency';
import { answerOf, type ControlPlaneTransport } from './control-plane-transport.ts';

const DEADLINE_MS = 5_000;
/** Keys are read again after this time, so that one that has been replaced is not trusted for long. */
const FRESH_MS = 300_000;
/** Tokens with an unknown key make the keys be read again, at most this often. */
const RELOAD_EVERY_MS = 1_000;

const answer = answerOf<KeySet>(KeySet);

/** The public keys that control planes sign with, as they publish them. */
export class ControlPlaneKeys {
  readonly #transport: Pick<ControlPlaneTransport, 'json'>;
  readonly #onFault: (error: unknown, action: string) => void;
  readonly #loading = new SingleFlight<void>();
  #keys: KeySet['keys'] = [];
  #readAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(
    transport: Pick<ControlPlaneTransport, 'json'>,
    onFault: (error: unknown, action: string) => void,
  ) {
    this.#transport = transport;
    this.#onFault = onFault;
  }

  /** Finds the key of a token. An unknown one makes the keys be read again. */
  readonly find: KeyFinder = async ({ keyId }) => {
    if (this.#known(keyId) === undefined) await this.#reload();
    const key = this.#known(keyId);
    return key === undefined ? undefined : { kty: 'OKP', crv: 'Ed25519', x: key.x };
  };

  /** Reads the keys again when it is time. Call it whenever a control plane has answered. */
  refresh(): void {
    if (performance.now() - this.#readAt > FRESH_MS) void this.#reload();
  }

  #known(keyId: string) {
    return this.#keys.find(({ kid }) => kid === keyId);
  }

  async #reload(): Promise<void> {
    await this.#loading.run(async () => {
      if (performance.now() - this.#askedAt < RELOAD_EVERY_MS) return;
      this.#askedAt = performance.now();
      const signal = AbortSignal.timeout(DEADLINE_MS);
      const call = { method: 'GET', path: '/keys', signal, deadlineMs: DEADLINE_MS } as const;
      try {
        this.#keys = (await this.#transport.json(call, answer)).keys;
        this.#readAt = performance.now();
      } catch (error) {
        this.#onFault(error, 'read the keys of the control planes');
      }
    });
  }
}
