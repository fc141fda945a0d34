import { finished } from 'node:stream';
import { EVENT_STREAM_MEDIA_TYPE, ExecRequest, WorkerSandboxParams } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import { EventStream } from '../../exec/event-stream.ts';
import { prepareCommand } from '../../exec/prepare-command.ts';
import { streamCommand } from '../../exec/stream-command.ts';
import { callerSignal } from '../caller-signal.ts';
import type { WorkerContext } from '../context.ts';

/** `POST /sandboxes/:id/exec`: the output of a command as server-sent events. */
export function execRoute(app: HttpServer, context: WorkerContext): void {
  app.post(
    '/sandboxes/:id/exec',
    { schema: { params: WorkerSandboxParams, body: ExecRequest } },
    async (request, reply) => {
      const sandbox = context.registry.get(request.params.id);
      const caller = callerSignal(reply, context);
      const leave = context.execSlots.enter(sandbox);
      context.execMetrics.started.inc();
      try {
        // Before the response begins, so that a failure is a plain error response.
        await prepareCommand(sandbox, request.body, caller);
      } catch (error) {
        leave();
        throw error;
      }
      const events = new EventStream();
      // The slot is free when the command has ended, and the caller has its output.
      finished(events.body, leave);
      void streamCommand(sandbox, request.body, { events, rates: context.outputRates }, caller);
      return reply
        .type(EVENT_STREAM_MEDIA_TYPE)
        .header('cache-control', 'no-store')
        .send(events.body);
    },
  );
}
