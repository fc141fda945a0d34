import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import {
  AgentLogQuery,
  type AgentSecrets,
  CommitTurnRequest,
  LIMITS,
  OCTET_STREAM_MEDIA_TYPE,
  type ReservedFrames,
  ReserveFramesRequest,
  ServiceError,
  SessionFilesParams,
  SessionParams,
  type SessionState,
  WorkerSandboxParams,
} from '@svc/contract';
import { acceptStreamOnly, type HttpServer } from '@svc/service-kit';
import { ChunksDouble } from './chunks-double.ts';

/** An in-memory session store of the control plane, which records the workers' commits. */
export class SessionStoreDouble {
  /** The secrets of every sandbox's agent. */
  secrets: AgentSecrets = { llm: { api_key: 'sk-the-real-key' }, env: { GREETING: 'hello' } };
  /** The error that answers each request for secrets; undefined answers it. */
  secretsFailure: ServiceError | undefined;
  readonly turns: (CommitTurnRequest & { readonly session: string })[] = [];
  /** The content of committed files, and of files from before there were chunks. */
  readonly files = new Map<string, Buffer>();
  readonly chunks = new ChunksDouble();
  /** The ends of agents' logs, by sandbox. */
  readonly logs = new Map<string, { readonly text: string; readonly totalBytes: number }>();
  /** The error that answers each log; undefined accepts it. */
  logFailure: ServiceError | undefined;
  readonly states = new Map<string, SessionState>();
  /** The error that answers each request for a state; undefined answers it. */
  stateFailure: ServiceError | undefined;
  /** Reserved numbers of frames, by session. */
  readonly numbers = new Map<string, ReservedFrames & { readonly numberer: string }>();
  /** The error that answers each commit; undefined accepts it. */
  failure: ServiceError | undefined;
  /** The error that answers each commit that names files; undefined accepts it. */
  filesFailure: ServiceError | undefined;
  /** Whether commits with files, a conversation or frames are refused because the account keeps as much as it may. */
  full = false;
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
    const last = <K extends 'conversation' | 'files_id' | 'manifest'>(key: K) =>
      turns.map((turn) => turn[key]).findLast((value) => value !== undefined);
    const [conversation, filesId] = [last('conversation'), last('files_id')];
    const manifest = last('manifest');
    return {
      generation: turns.at(-1)?.generation ?? 1,
      last_seq: turns.at(-1)?.last_seq ?? 0,
      first_seq: turns[0]?.first_seq ?? 1,
      frames: turns.map(({ frames }) => frames).join(''),
      ...(conversation === undefined ? {} : { conversation }),
      ...(filesId === undefined ? {} : { files_id: filesId }),
      ...(manifest === undefined ? {} : { manifest }),
    };
  }

  serve(app: HttpServer): void {
    app.get(
      '/internal/v1/sandboxes/:id/agent-secrets',
      { schema: { params: WorkerSandboxParams } },
      async () => {
        this.secretsAsked += 1;
        if (this.secretsFailure !== undefined) throw this.secretsFailure;
        return this.secrets;
      },
    );
    app.get(
      '/internal/v1/sessions/:id/state',
      { schema: { params: SessionParams } },
      async (request) => {
        if (this.stateFailure !== undefined) throw this.stateFailure;
        const state = this.states.get(request.params.id);
        if (state === undefined) throw new ServiceError('session_not_found');
        return state;
      },
    );
    app.post(
      '/internal/v1/sessions/:id/frame-numbers',
      { schema: { params: SessionParams, body: ReserveFramesRequest } },
      async (request) => this.#reserve(request.params.id, request.body),
    );
    this.#serveFiles(app);
    this.chunks.serve(app);
    this.#serveLogs(app);
    app.register(async (scope) => this.#serveTurns(scope as unknown as HttpServer));
  }

  #reserve(session: string, { numberer, after }: ReserveFramesRequest): ReservedFrames {
    const known = this.numbers.get(session);
    const isKnown = known?.numberer === numberer;
    if (after !== undefined && known !== undefined && !isKnown) {
      throw new ServiceError('stale_generation');
    }
    const highest = known?.reserved_seq ?? this.states.get(session)?.last_seq ?? 0;
    const base_seq = isKnown ? known.base_seq : highest;
    const wanted = (after ?? base_seq) + LIMITS.frameNumbersBlock;
    const reserved_seq = isKnown ? Math.max(wanted, known.reserved_seq) : wanted;
    this.numbers.set(session, { numberer, base_seq, reserved_seq });
    return { base_seq, reserved_seq };
  }

  #serveTurns(app: HttpServer): void {
    app.post(
      '/internal/v1/sessions/:id/turns',
      { bodyLimit: 64 * 1024 * 1024, schema: { params: SessionParams, body: CommitTurnRequest } },
      async (request, reply) => {
        this.commitsAsked += 1;
        await this.gate;
        if (this.failure !== undefined) throw this.failure;
        const { files_id: filesId, manifest, conversation, frames } = request.body;
        if (this.full && (filesId ?? conversation ?? (frames || undefined)) !== undefined) {
          throw new ServiceError('session_storage_full');
        }
        const { last_of: lastOf, last_seq: reserved_seq } = request.body;
        const known = this.numbers.get(request.params.id);
        if (known !== undefined && known.numberer === lastOf) {
          this.numbers.set(request.params.id, { ...known, reserved_seq });
        }
        if (filesId !== undefined && this.filesFailure !== undefined) throw this.filesFailure;
        if (filesId !== undefined && manifest !== undefined) {
          this.chunks.check(manifest);
          this.files.set(filesId, await this.chunks.content(manifest));
        }
        this.turns.push({ session: request.params.id, ...request.body });
        return reply.code(204).send();
      },
    );
  }

  #serveLogs(app: HttpServer): void {
    app.register(async (scope) => {
      const logs = scope as unknown as HttpServer;
      acceptStreamOnly(logs, OCTET_STREAM_MEDIA_TYPE);
      logs.put(
        '/internal/v1/sandboxes/:id/log',
        { schema: { params: WorkerSandboxParams, querystring: AgentLogQuery } },
        async (request, reply) => {
          const text = (await buffer(request.body as Readable)).toString();
          if (this.logFailure !== undefined) throw this.logFailure;
          this.logs.set(request.params.id, { text, totalBytes: request.query.total_bytes });
          return reply.code(204).send();
        },
      );
    });
  }

  #serveFiles(app: HttpServer): void {
    const path = '/internal/v1/sessions/:id/files/:files_id';
    app.get(path, { schema: { params: SessionFilesParams } }, async (request, reply) => {
      const files = this.files.get(request.params.files_id);
      if (files === undefined) throw new ServiceError('session_not_found');
      return reply.type('application/octet-stream').send(files);
    });
  }
}
