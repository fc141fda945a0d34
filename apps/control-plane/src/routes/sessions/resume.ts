import { ResumedSession, ResumeSessionRequest } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems, BODY_PROBLEMS } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import { START_PROBLEMS } from './problems.ts';

/** `POST /v1/sessions/resume`: answers once the new sandbox runs. */
export const resumeSession: Route<'auth' | 'sessions'> = (app, { auth, sessions }) => {
  app.post(
    '/v1/sessions/resume',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'resumeSession',
        tags: ['Sessions'],
        summary: 'Resume a session on a fresh sandbox',
        description:
          'Goes on from the last finished turn. A session that is still active is stopped in order first.',
        security: BY_API_KEY,
        body: ResumeSessionRequest,
        response: { 200: ResumedSession, ...PROBLEMS },
      },
    },
    (request, reply) => sessions.resume(callerOf(request), request.body, clientGoneSignal(reply)),
  );
};

const PROBLEMS = authenticatedProblems(
  ...BODY_PROBLEMS,
  'session_of_another_tenant',
  'session_not_found',
  'session_starting',
  'session_erased',
  'secret_bundle_not_found_at_resume',
  'session_files_damaged',
  'object_store_unavailable',
  ...START_PROBLEMS,
);
