import { Readable } from 'node:stream';
import {
  AgentSecrets,
  type CommitTurnRequest,
  ReservedFrames,
  type ReserveFramesRequest,
  SessionState,
} from '@svc/contract';
import type { LogEnd } from '@svc/service-kit/log-tail';
import { answerOf, type ControlPlaneTransport } from './control-plane-transport.ts';

const SHORT_MS = 10_000;
/** For frames and conversations. */
const LONG_MS = 30_000;
/** For a whole archive. */
const FILES_MS = 300_000;

const secrets = answerOf<AgentSecrets>(AgentSecrets);
const state = answerOf<SessionState>(SessionState);
const reserved = answerOf<ReservedFrames>(ReservedFrames);

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

  /** Stores the end of an agent's log. Fails with `sandbox_not_found` when the sandbox has no record any more. */
  putAgentLog(vmId: string, { bytes, totalBytes }: LogEnd, signal: AbortSignal): Promise<void> {
    const path = `/sandboxes/${encodeURIComponent(vmId)}/log?total_bytes=${totalBytes}`;
    const body = Readable.from([bytes], { objectMode: false });
    return this.#transport.done({ method: 'PUT', path, body, signal, deadlineMs: SHORT_MS });
  }

  state(sessionId: string, signal: AbortSignal): Promise<SessionState> {
    const path = `${pathOf(sessionId)}/state`;
    return this.#transport.json({ method: 'GET', path, signal, deadlineMs: LONG_MS }, state);
  }

  /** Reserves numbers for frames. Fails like {@link commitTurn}. */
  reserveFrames(
    sessionId: string,
    request: ReserveFramesRequest,
    signal: AbortSignal,
  ): Promise<ReservedFrames> {
    const path = `${pathOf(sessionId)}/frame-numbers`;
    const call = { method: 'POST', path, json: request, signal, deadlineMs: SHORT_MS } as const;
    return this.#transport.json(call, reserved);
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

  /** Files of a session that were stored before there were chunks. */
  getEarlierFiles(sessionId: string, filesId: string, signal: AbortSignal): Promise<Readable> {
    const path = `${pathOf(sessionId)}/files/${encodeURIComponent(filesId)}`;
    return this.#transport.bytes({ method: 'GET', path, signal, deadlineMs: FILES_MS });
  }
}

function pathOf(sessionId: string): string {
  return `/sessions/${encodeURIComponent(sessionId)}`;
}
