import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { deriveChunkKeys, openChunk } from '@svc/chunks';
import {
  ChunkSecretQuery,
  type FilesManifest,
  NamedChunks,
  OCTET_STREAM_MEDIA_TYPE,
  ServiceError,
  SessionParams,
  UploadChunksRequest,
} from '@svc/contract';
import { acceptStreamOnly, type HttpServer } from '@svc/service-kit';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';

/** The route of objects, which needs no token. */
export const OBJECTS_PATH = '/objects/';

/** Stored chunks and the object store that contains them, in memory. Objects are named like their chunks. */
export class ChunksDouble {
  readonly secret = Buffer.alloc(32, 7);
  readonly objects = new Map<string, Buffer>();
  /** Chunks that were announced, and whether their upload was confirmed. */
  readonly chunks = new Map<string, 'announced' | 'stored'>();
  /** Bytes that were uploaded, and the number of uploads. */
  uploadedBytes = 0;
  uploads = 0;
  /** The status that answers each transfer of an object, or that its connection is closed; undefined serves it. */
  failure: number | 'closed' | undefined;
  /** Called before each upload is answered. */
  onUpload: () => void | Promise<void> = () => undefined;
  /** Answers calls about chunks; undefined serves them. */
  refusal: ServiceError | undefined;

  /** The content of files. @throws Error when a chunk is not stored or not intact */
  async content({ chunks }: FilesManifest): Promise<Buffer> {
    const keys = deriveChunkKeys(this.secret);
    const parts = chunks.map((id) => {
      const sealed = this.objects.get(id);
      if (sealed === undefined) throw new Error(`the chunk ${id} is not stored`);
      return openChunk(sealed, id, keys);
    });
    return Buffer.concat(await Promise.all(parts));
  }

  /** @throws ServiceError `file_not_found` unless all chunks are stored */
  check({ chunks }: FilesManifest): void {
    if (chunks.some((id) => this.chunks.get(id) !== 'stored')) {
      throw new ServiceError('file_not_found');
    }
  }

  serve(app: HttpServer): void {
    const path = '/internal/v1/sessions/:id';
    const named = { schema: { params: SessionParams, body: NamedChunks } };
    const refuse = async () => {
      if (this.refusal !== undefined) throw this.refusal;
    };
    app.get(
      `${path}/chunk-secret`,
      { onRequest: refuse, schema: { params: SessionParams, querystring: ChunkSecretQuery } },
      async () => ({ secret: this.secret.toString('base64') }),
    );
    app.post(`${path}/chunks/missing`, { onRequest: refuse, ...named }, async ({ body }) => ({
      ids: body.ids.filter((id) => this.chunks.get(id) !== 'stored'),
    }));
    app.post(
      `${path}/chunks/uploads`,
      { onRequest: refuse, schema: { params: SessionParams, body: UploadChunksRequest } },
      async ({ body }) => {
        const chunks = body.chunks.filter(({ id }) => this.chunks.get(id) !== 'stored');
        for (const { id } of chunks) this.chunks.set(id, 'announced');
        return { chunks: chunks.map(({ id }) => ({ id, url: OBJECTS_PATH + id })) };
      },
    );
    app.post(
      `${path}/chunks/uploaded`,
      { onRequest: refuse, ...named },
      async ({ body }, reply) => {
        for (const id of body.ids) {
          if (!this.objects.has(id)) throw new ServiceError('file_not_found');
          this.chunks.set(id, 'stored');
        }
        return reply.code(204).send();
      },
    );
    app.post(`${path}/chunks/downloads`, { onRequest: refuse, ...named }, async ({ body }) => ({
      chunks: body.ids.map((id) => ({ id, url: OBJECTS_PATH + id })),
    }));
    this.#serveObjects(app);
  }

  #serveObjects(app: HttpServer): void {
    const params = Type.Object({ id: Type.String() });
    app.get(`${OBJECTS_PATH}:id`, { schema: { params } }, async ({ params: { id } }, reply) => {
      const object = this.objects.get(id);
      if (this.failure !== undefined) return fail(reply, this.failure);
      if (object === undefined) return reply.code(404).send();
      return reply.type(OCTET_STREAM_MEDIA_TYPE).send(object);
    });
    app.register(async (scope) => {
      const objects = scope as unknown as HttpServer;
      acceptStreamOnly(objects, OCTET_STREAM_MEDIA_TYPE);
      objects.put(`${OBJECTS_PATH}:id`, { schema: { params } }, async (request, reply) => {
        const bytes = await buffer(request.body as Readable);
        await this.onUpload();
        if (this.failure !== undefined) return fail(reply, this.failure);
        this.uploads += 1;
        this.uploadedBytes += bytes.length;
        this.objects.set(request.params.id, bytes);
        return reply.code(200).send();
      });
    });
  }
}

function fail(reply: FastifyReply, failure: number | 'closed'): FastifyReply {
  if (failure !== 'closed') return reply.code(failure).send();
  reply.raw.destroy();
  return reply.hijack();
}
