import { INTERNAL_PREFIX, KeySet } from '@svc/contract';
import type { Route } from '../../services.ts';

/** `GET /internal/v1/keys`: the public keys that control planes sign with. For everybody, since they are public. */
export const controlPlaneKeys: Route<'enrolments'> = (app, { enrolments }) => {
  app.get(
    `${INTERNAL_PREFIX}/keys`,
    { schema: { hide: true, response: { 200: KeySet } } },
    async () => enrolments.keys(),
  );
};
