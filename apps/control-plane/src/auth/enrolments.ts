import { type EnrolRequest, type KeySet, ServiceError } from '@svc/contract';
import { findAmong, type KeyPair, keyIdOf, verifyEnrolmentToken } from '@svc/service-kit';
import type { Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';

const ERRORS = { token_used: 'enrolment_token_used', id_in_use: 'component_id_in_use' } as const;

/** Gives components their identity: a key pair of their own, whose public key they enrol with a token of the operator. */
export class Enrolments {
  readonly #components: Pick<Store['components'], 'enrol'>;
  readonly #keys: readonly KeyPair[];
  readonly #logger: Pick<FastifyBaseLogger, 'info' | 'warn'>;

  /** @param keys those of control planes, each of which may have signed a token */
  constructor(
    components: Pick<Store['components'], 'enrol'>,
    keys: readonly KeyPair[],
    logger: Pick<FastifyBaseLogger, 'info' | 'warn'>,
  ) {
    this.#components = components;
    this.#keys = keys;
    this.#logger = logger;
  }

  /** @throws ServiceError `enrolment_token_invalid`, `enrolment_token_used`, `component_id_in_use` */
  async enrol(request: EnrolRequest): Promise<void> {
    const { token, kind, component_id: componentId, public_key: key } = request;
    const { tokenId, uses, expiresAt, ...made } = await verifyEnrolmentToken(
      token,
      findAmong(...this.#keys),
    );
    const isForId = made.componentId === componentId;
    if (made.kind !== kind || (made.componentId !== undefined && !isForId)) {
      throw new ServiceError('enrolment_token_invalid');
    }
    const keyId = await keyIdOf(key);
    const refusal = await this.#components.enrol({
      ...{ componentId, kind, keyId, publicKey: key.x },
      token: { tokenId, uses, expiresAt, isForId },
    });
    if (refusal !== undefined) {
      this.#logger.warn({ componentId, tokenId, refusal }, 'an enrolment was refused');
      throw new ServiceError(ERRORS[refusal]);
    }
    this.#logger.info({ componentId, kind, keyId }, 'a component has enrolled');
  }

  /** The public keys that control planes sign with. */
  keys(): KeySet {
    return { keys: this.#keys.map(({ id: kid, publicKey }) => ({ ...publicKey, kid })) };
  }
}
