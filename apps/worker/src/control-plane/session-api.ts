import type { Readable } from 'node:stream';
import { AgentSecrets, type CommitTurnRequest, SessionState } from '@svc/contract';
import { answerOf, type ControlPlaneTransport } from './control-plane-transport.ts';

const SHORT_MS = 10_000;
/** For frames and conversations. */
const LONG_MS = 30_000;
/** For the agent's files. */
const FILES_MS = 300_000;

const secrets = answerOf<AgentSecrets>(AgentSecrets);
const state = answerOf<SessionState>(SessionState);

/** The control plane's storage of agents and sessions. Each call has a time limit; none is retried here. */
export class SessionApi {
  readonly #transport: ControlPlaneTransport;

  constructor(transport: ControlPlaneTransport) {
    this.#transport = transport;
  }

  agentSecrets(vmId: string, signal: AbortSignal): Promise<AgentSecrets> {
    const path = `/sandboxes/${encodeURIComponent(vmId)}/agent-secrets`;
    return this.#transport.json({ method: 'GET', path, signal, deadlineMs: SHORT_MS }, secrets);
  }

  state(sessionId: string, signal: AbortSignal): Promise<SessionState> {
    const path = `${pathOf(sessionId)}/state`;
    return this.#transport.json({ method: 'GET', path, signal, deadlineMs: LONG_MS }, state);
  }

  /** Fails with a `ControlPlaneError` `stale_generation` when the session has been started again since. */
  commitTurn(sessionId: string, turn: CommitTurnRequest, signal: AbortSignal): Promise<void> {
    const path = `${pathOf(sessionId)}/turns`;
    return this.#transport.done({
      method: 'POST',
      path,
      json: turn,
      signal,
      deadlineMs: LONG_MS,
    });
  }

  /** Uploads files for a later {@link commitTurn}, and fails like it. */
  putFiles(
    sessionId: string,
    files: { readonly id: string; readonly generation: number; readonly body: Readable },
    signal: AbortSignal,
  ): Promise<void> {
    const path = `${pathOf(sessionId)}/files/${files.id}?generation=${files.generation}`;
    const { body } = files;
    return this.#transport.done({ method: 'PUT', path, body, signal, deadlineMs: FILES_MS });
  }

  getFiles(sessionId: string, filesId: string, signal: AbortSignal): Promise<Readable> {
    const path = `${pathOf(sessionId)}/files/${encodeURIComponent(filesId)}`;
    return this.#transport.bytes({ method: 'GET', path, signal, deadlineMs: FILES_MS });
  }
}

function pathOf(sessionId: string): string {
  return `/sessions/${encodeURIComponent(sessionId)}`;
}
