import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import {
  type AgentSecrets,
  CommitTurnRequest,
  OCTET_STREAM_MEDIA_TYPE,
  ServiceError,
  SessionFilesParams,
  SessionParams,
  type SessionState,
  WorkerSandboxParams,
} from '@svc/contract';
import { acceptStreamOnly, type HttpServer } from '@svc/service-kit';
import { Type } from 'typebox';

/** An in-memory session store of the control plane, which records the workers' commits. */
export class SessionStoreDouble {
  /** The secrets of every sandbox's agent. */
  secrets: AgentSecrets = { llm: { api_key: 'sk-the-real-key' }, env: { GREETING: 'hello' } };
  readonly turns: (CommitTurnRequest & { readonly session: string })[] = [];
  readonly files = new Map<string, Buffer>();
  readonly states = new Map<string, SessionState>();
  /** The error that answers each commit; undefined accepts it. */
  failure: ServiceError | undefined;
  /** Settles before any commit is answered. */
  gate: Promise<void> = Promise.resolve();
  secretsAsked = 0;
  commitsAsked = 0;

  /** The committed frames, in the order of their commits. */
  get frames(): { seq: number; type: string }[] {
    return this.turns
      .flatMap(({ frames }) => frames.split('\n'))
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  }

  /** The state from which a session would be resumed. */
  stateOf(session: string): SessionState {
    const turns = this.turns.filter((turn) => turn.session === session);
    const last = <K extends 'conversation' | 'files_id'>(key: K) =>
      turns.map((turn) => turn[key]).findLast((value) => value !== undefined);
    const [conversation, filesId] = [last('conversation'), last('files_id')];
    return {
      generation: turns.at(-1)?.generation ?? 1,
      last_seq: turns.at(-1)?.last_seq ?? 0,
      first_seq: turns[0]?.first_seq ?? 1,
      frames: turns.map(({ frames }) => frames).join(''),
      ...(conversation === undefined ? {} : { conversation }),
      ...(filesId === undefined ? {} : { files_id: filesId }),
    };
  }

  serve(app: HttpServer): void {
    app.get(
      '/internal/v1/sandboxes/:id/agent-secrets',
      { schema: { params: WorkerSandboxParams } },
      async () => {
        this.secretsAsked += 1;
        return this.secrets;
      },
    );
    app.get(
      '/internal/v1/sessions/:id/state',
      { schema: { params: SessionParams } },
      async (request) => {
        const state = this.states.get(request.params.id);
        if (state === undefined) throw new ServiceError('session_not_found');
        return state;
      },
    );
    this.#serveFiles(app);
    app.register(async (scope) => this.#serveTurns(scope as unknown as HttpServer));
  }

  #serveTurns(app: HttpServer): void {
    app.post(
      '/internal/v1/sessions/:id/turns',
      { bodyLimit: 64 * 1024 * 1024, schema: { params: SessionParams, body: CommitTurnRequest } },
      async (request, reply) => {
        this.commitsAsked += 1;
        await this.gate;
        if (this.failure !== undefined) throw this.failure;
        this.turns.push({ session: request.params.id, ...request.body });
        return reply.code(204).send();
      },
    );
  }

  #serveFiles(app: HttpServer): void {
    const path = '/internal/v1/sessions/:id/files/:files_id';
    const querystring = Type.Object({ generation: Type.Optional(Type.String()) });
    app.get(path, { schema: { params: SessionFilesParams } }, async (request, reply) => {
      const files = this.files.get(request.params.files_id);
      if (files === undefined) throw new ServiceError('session_not_found');
      return reply.type('application/octet-stream').send(files);
    });
    app.register(async (scope) => {
      const files = scope as unknown as HttpServer;
      acceptStreamOnly(files, OCTET_STREAM_MEDIA_TYPE);
      files.put(
        path,
        { schema: { params: SessionFilesParams, querystring } },
        async (request, reply) => {
          this.files.set(request.params.files_id, await buffer(request.body as Readable));
          return reply.code(204).send();
        },
      );
    });
  }
}
