import { CommitTurnRequest, INTERNAL_PREFIX, SessionParams } from '@svc/contract';
import { workerOf } from '../../auth/component-authenticator.ts';
import type { Route } from '../../services.ts';
import { TURN_BODY_BYTES } from './body-limits.ts';

/** `POST /internal/v1/sessions/{id}/turns`: commits a turn, for the worker that ran it. */
export const sessionTurns: Route<'componentAuth' | 'sessions'> = (
  app,
  { componentAuth, sessions },
) => {
  app.post(
    `${INTERNAL_PREFIX}/sessions/:id/turns`,
    {
      onRequest: componentAuth.worker,
      bodyLimit: TURN_BODY_BYTES,
      schema: { hide: true, params: SessionParams, body: CommitTurnRequest },
    },
    async (request, reply) => {
      await sessions.history.commit(workerOf(request), request.params.id, request.body);
      return reply.code(204).send();
    },
  );
};
