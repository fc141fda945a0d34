import { EnrolRequest, INTERNAL_PREFIX } from '@svc/contract';
import type { Route } from '../../services.ts';

/** Everybody may send one. */
const BODY_BYTES = 16 * 1024;

/** `GET /internal/v1/components/self`, for a component that asks whether it has enrolled: 204, or 401. */
export const ownComponent: Route<'componentAuth'> = (app, { componentAuth }) => {
  app.get(
    `${INTERNAL_PREFIX}/components/self`,
    { onRequest: componentAuth.any, schema: { hide: true } },
    async (_request, reply) => reply.code(204).send(),
  );
};

/** `POST /internal/v1/components`: a component enrols its public key. The token in the body is the credential. */
export const enrolComponent: Route<'enrolments'> = (app, { enrolments }) => {
  app.post(
    `${INTERNAL_PREFIX}/components`,
    { bodyLimit: BODY_BYTES, schema: { hide: true, body: EnrolRequest } },
    async ({ body }, reply) => {
      await enrolments.enrol(body);
      return reply.code(204).send();
    },
  );
};
