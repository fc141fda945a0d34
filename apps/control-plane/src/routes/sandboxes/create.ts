import { CreateSandboxRequest, CreateSandboxResponse } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import { IdempotencyHeaders } from '../idempotency-header.ts';

/** `POST /v1/sandboxes`: answers once the sandbox runs. */
export const createSandbox: Route<'auth' | 'sandboxes'> = (app, { auth, sandboxes }) => {
  app.post(
    '/v1/sandboxes',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'createSandbox',
        tags: ['Sandboxes'],
        summary: 'Create a sandbox',
        security: BY_API_KEY,
        headers: IdempotencyHeaders,
        body: CreateSandboxRequest,
        response: { 201: CreateSandboxResponse, ...PROBLEMS },
      },
    },
    async (request, reply) => {
      const options = {
        idempotencyKey: request.headers['idempotency-key'],
        signal: clientGoneSignal(reply),
      };
      const sandbox = await sandboxes.create(callerOf(request), request.body, options);
      return reply.code(201).header('location', `/v1/sandboxes/${sandbox.vm_id}`).send(sandbox);
    },
  );
};

const PROBLEMS = authenticatedProblems(
  'invalid_json',
  'validation_failed',
  'wire_version_invalid',
  'app_json_invalid',
  'tool_not_available',
  'llm_key_required',
  'model_required',
  'model_not_allowed',
  'metadata_too_large',
  'reserved_env_var',
  'multi_agent_needs_wire_version_2',
  'workspace_fields_required',
  'persistence_url_refused',
  'llm_base_url_refused',
  'idempotency_key_invalid',
  'idempotency_key_reused',
  'idempotency_in_progress',
  'credits_exhausted',
  'no_capacity',
  'sandbox_deleted',
  'payload_too_large',
  'unsupported_media_type',
  'sandbox_limit_reached',
  'boot_failed',
  'unknown_template',
  'unknown_agent',
  'template_not_available',
  'workspace_unavailable',
  'workspace_too_large',
  'guest_unresponsive',
  'no_workers',
  'worker_unreachable',
  'worker_bad_response',
);
