import { once } from 'node:events';
import {
  type CancelReason,
  type ConfigUpdate,
  type EndReason,
  EVENT_STREAM_MEDIA_TYPE,
  type ExecRequest,
  INTERNAL_PREFIX,
  OCTET_STREAM_MEDIA_TYPE,
  type PlaceSandboxRequest,
  ServiceError,
} from '@svc/contract';
import { acceptStreamOnly, clientGoneSignal, formatEvent, type HttpServer } from '@svc/service-kit';
import { endWith } from '@svc/service-kit/log-tail';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Operation, tell } from './lies.ts';
import type { SandboxRecords } from './sandbox-records.ts';

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/** Adds the routes of a worker that operate on sandboxes. */
export function addSandboxRoutes(app: HttpServer, records: SandboxRecords): void {
  const base = `${INTERNAL_PREFIX}/sandboxes`;
  const answer = (operation: Operation, handler: Handler): Handler => {
    return async (request, reply) => {
      const lie = records.lies.get(operation);
      const honest: Handler = async () => {
        const failure = records.failures.get(operation);
        if (failure !== undefined) throw new ServiceError(failure);
        return handler(request, reply);
      };
      return lie === undefined ? honest(request, reply) : tell(lie, request, reply, honest);
    };
  };
  app.post(
    base,
    {
      preHandler: async ({ body }) => {
        records.placed.push(body as PlaceSandboxRequest);
      },
    },
    answer('create', async ({ body }, reply) => {
      const request = body as PlaceSandboxRequest;
      await records.beforeCreated(request, clientGoneSignal(reply));
      reply.code(201);
      return records.add(request);
    }),
  );
  app.get(
    base,
    answer('list', async ({ query }) => {
      const { tenant_id: tenant } = query as { tenant_id?: string };
      const all = [...records.sandboxes.values()];
      return { sandboxes: all.filter((sandbox) => sandbox.tenant_id === tenant) };
    }),
  );
  app.delete(
    `${base}/:id`,
    answer('destroy', async (request) => {
      await records.beforeDestroyed(idOf(request));
      const { reason } = request.query as { reason?: EndReason };
      return records.end(idOf(request), reason);
    }),
  );
  app.post(
    `${base}/:id/exec`,
    answer('exec', async (request, reply) => {
      const vmId = idOf(request);
      records.running(vmId);
      const { command } = request.body as ExecRequest;
      if (command === 'hang') return hang(records, vmId, clientGoneSignal(reply));
      reply.type(EVENT_STREAM_MEDIA_TYPE);
      return [
        formatEvent('stdout', { data: command }),
        formatEvent('exit', { exit_code: 0, duration_ms: 1, truncated: false }),
      ].join('');
    }),
  );
  app.get(
    `${base}/:id/files`,
    answer('download', async (request, reply) => {
      records.running(idOf(request));
      const bytes = records.files.get(pathOf(request));
      if (bytes === undefined) throw new ServiceError('file_not_found');
      reply.type(OCTET_STREAM_MEDIA_TYPE);
      return bytes;
    }),
  );
  app.register(async (scope) => {
    acceptStreamOnly(scope, OCTET_STREAM_MEDIA_TYPE);
    scope.post(
      `${base}/:id/files`,
      answer('upload', async (request) => {
        records.running(idOf(request));
        const chunks: Buffer[] = [];
        for await (const chunk of request.raw) chunks.push(chunk);
        records.files.set(pathOf(request), Buffer.concat(chunks));
        return { status: 'uploaded' };
      }),
    );
  });
  app.post(
    `${base}/:id/pause`,
    answer('pause', async (request) => {
      records.running(idOf(request));
      return records.change(idOf(request), { state: 'paused' });
    }),
  );
  app.post(
    `${base}/:id/resume`,
    answer('resume', async (request) => records.running(idOf(request))),
  );
  app.post(
    `${base}/:id/cancel`,
    answer('cancel', async (request) => {
      const { reason } = request.body as { reason: CancelReason };
      records.cancels.push({ vmId: idOf(request), reason });
      return { vm_id: idOf(request), cancelled: false, reason };
    }),
  );
  app.post(
    `${base}/:id/config-update`,
    answer('config-update', async (request, reply) => {
      records.running(idOf(request));
      records.configUpdates.push({ vmId: idOf(request), ...(request.body as ConfigUpdate) });
      await records.beforeConfigUpdated();
      reply.code(204);
      return undefined;
    }),
  );
  app.get(
    `${base}/:id/logs`,
    answer('logs', async (request) => {
      const vmId = idOf(request);
      const kept = records.keptLogs.get(vmId);
      const isLive = records.sandboxes.get(vmId)?.state === 'running';
      if (kept === undefined && !isLive) throw new ServiceError('logs_unavailable');
      await records.beforeLog(vmId);
      const { known_bytes: knownBytes, ...query } = request.query as Record<string, string>;
      const bytes = Buffer.from(kept ?? '');
      const log = { bytes, totalBytes: bytes.length };
      const wanted =
        query.bytes === undefined ? { lines: Number(query.lines) } : { bytes: Number(query.bytes) };
      const end = endWith(log, wanted, knownBytes === undefined ? undefined : Number(knownBytes));
      return { end: end.bytes.toString('base64'), total_bytes: end.totalBytes };
    }),
  );
}

function idOf({ params }: FastifyRequest): string {
  return (params as { id: string }).id;
}

function pathOf({ query }: FastifyRequest): string {
  return (query as { path: string }).path;
}

async function hang(records: SandboxRecords, vmId: string, gone: AbortSignal): Promise<never> {
  records.busy += 1;
  if (!gone.aborted) await once(gone, 'abort');
  records.aborted.push(vmId);
  throw gone.reason;
}
