import { CONTROL_PLANE_NAME, type ComponentKind, INTERNAL_PREFIX } from '@svc/contract';
import {
  type ComponentIdentity,
  createTokenMinter,
  deriveControlPlaneKey,
  findAmong,
  type KeyFinder,
  type KeyPair,
  mintEnrolmentToken,
  Secret,
} from '@svc/service-kit';

const TOKEN_SECONDS = 60;

/**
 * A worker or a runtime host as a control plane sees it. It enrols before its first request, with a token that it makes itself.
 */
export class ComponentDouble {
  readonly kind: ComponentKind;
  readonly id: string;
  readonly #secret: Secret;
  #hasEnrolled = false;

  constructor(kind: ComponentKind, id: string, secret: Secret) {
    this.kind = kind;
    this.id = id;
    this.#secret = secret;
  }

  /** Its key. Doubles with the same id have the same one, as copies of a disk do. */
  get key(): Promise<KeyPair> {
    return deriveControlPlaneKey(new Secret(`${this.#secret.reveal()} of ${this.id}`));
  }

  /** Its id and its key. */
  async identity(): Promise<ComponentIdentity> {
    return { id: this.id, key: await this.key };
  }

  /** Enrols with a control plane, with a token for this id. */
  async enrol(controlPlane: string): Promise<Response> {
    const [signer, { publicKey }] = await Promise.all([
      deriveControlPlaneKey(this.#secret),
      this.key,
    ]);
    const enrolment = { kind: this.kind, componentId: this.id, uses: 1 };
    const token = await mintEnrolmentToken(signer, enrolment, TOKEN_SECONDS);
    return fetch(`${controlPlane}${INTERNAL_PREFIX}/components`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        token,
        kind: this.kind,
        component_id: this.id,
        public_key: publicKey,
      }),
    });
  }

  /** Sends a request to a control plane with the credential of this component. */
  async ask(
    controlPlane: string,
    method: string,
    path: string,
    request: Pick<RequestInit, 'body' | 'headers' | 'signal'> = {},
  ): Promise<Response> {
    if (!this.#hasEnrolled) {
      const answer = await this.enrol(controlPlane);
      if (!answer.ok) return answer;
      this.#hasEnrolled = true;
    }
    const token = await createTokenMinter(await this.key, this.id)(CONTROL_PLANE_NAME);
    return fetch(`${controlPlane}${INTERNAL_PREFIX}${path}`, {
      method,
      ...request,
      headers: { authorization: `Bearer ${token}`, ...request.headers },
      ...(request.body instanceof ReadableStream ? { duplex: 'half' } : {}),
    });
  }
}

/** Finds the keys of the control planes with this cluster secret. */
export function controlPlaneKeys(secret: Secret): KeyFinder {
  const key = deriveControlPlaneKey(secret);
  return async (claimed) => findAmong(await key)(claimed);
}
