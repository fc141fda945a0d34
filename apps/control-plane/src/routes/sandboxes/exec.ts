import type { Readable } from 'node:stream';
import { EVENT_STREAM_MEDIA_TYPE, ExecRequest, ExecResponse, SandboxParams } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import type { WorkerStream } from '../../workers/worker-client.ts';
import { USE_PROBLEMS } from './problems.ts';

/** `POST /v1/sandboxes/{id}/exec`: the whole result, or server-sent events for a caller that accepts them. */
export const execInSandbox: Route<'auth' | 'sandboxes'> = (app, { auth, sandboxes }) => {
  app.post(
    '/v1/sandboxes/:id/exec',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'execInSandbox',
        tags: ['Sandboxes'],
        summary: 'Run a shell command',
        description:
          'Blocks until the command ends. With `Accept: text/event-stream` the output comes as `stdout` and `stderr` events and ends with an `exit` event. When the caller leaves, the command and everything it started is killed.',
        security: BY_API_KEY,
        params: SandboxParams,
        body: ExecRequest,
        response: {
          200: {
            description: 'The result of the command, whatever its exit code.',
            content: {
              'application/json': { schema: ExecResponse },
              [EVENT_STREAM_MEDIA_TYPE]: { schema: Type.String() },
            },
          },
          ...authenticatedProblems(
            ...USE_PROBLEMS,
            'command_required',
            'cwd_not_found',
            'too_many_execs',
            'too_many_operations',
            'disk_full',
          ),
        },
      },
    },
    async (request, reply) => {
      const call = [
        callerOf(request),
        request.params.id,
        request.body,
        clientGoneSignal(reply),
      ] as const;
      if (acceptsEvents(request.headers.accept))
        return sendEvents(reply, await sandboxes.operations.streamExec(...call));
      return sendJson(reply, await sandboxes.operations.exec(...call));
    },
  );
};

function acceptsEvents(accept = ''): boolean {
  return accept
    .toLowerCase()
    .split(',')
    .some((range) => range.split(';')[0]?.trim() === EVENT_STREAM_MEDIA_TYPE);
}

function sendJson(reply: FastifyReply, body: Readable): FastifyReply {
  return reply.type('application/json').send(body);
}

function sendEvents(reply: FastifyReply, { body }: WorkerStream): FastifyReply {
  return reply
    .type(EVENT_STREAM_MEDIA_TYPE)
    .header('cache-control', 'no-store')
    .header('x-accel-buffering', 'no')
    .send(body);
}
