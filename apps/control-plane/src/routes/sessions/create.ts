import { CreateSessionRequest, SessionAccess } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems, BODY_PROBLEMS } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import { IdempotencyHeaders } from '../idempotency-header.ts';
import { START_PROBLEMS } from './problems.ts';

/** `POST /v1/sessions`: answers once the session's sandbox runs. */
export const createSession: Route<'auth' | 'sessions'> = (app, { auth, sessions }) => {
  app.post(
    '/v1/sessions',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'createSession',
        tags: ['Sessions'],
        summary: 'Start an agent session',
        description: 'Makes a sandbox with the agent in it. Attach to it at `connect_url`.',
        security: BY_API_KEY,
        headers: IdempotencyHeaders,
        body: CreateSessionRequest,
        response: { 201: SessionAccess, ...PROBLEMS },
      },
    },
    async (request, reply) => {
      const options = {
        idempotencyKey: request.headers['idempotency-key'],
        signal: clientGoneSignal(reply),
      };
      const access = await sessions.create(callerOf(request), request.body, options);
      const location = `/v1/sessions/${access.chat_session_id}`;
      return reply.code(201).header('location', location).send(access);
    },
  );
};

const PROBLEMS = authenticatedProblems(
  ...BODY_PROBLEMS,
  'session_agent_unknown',
  'session_template_unknown',
  'app_json_invalid',
  'capability_set_unknown',
  'bundle_not_found',
  'session_limit_reached',
  ...START_PROBLEMS,
  'idempotency_key_invalid',
  'idempotency_key_reused',
  'idempotency_in_progress',
);
