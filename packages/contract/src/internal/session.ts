/** The internal API for sessions, below {@link INTERNAL_PREFIX}. */

import { type Static, Type } from 'typebox';
import { SESSION_STATUSES } from '../sessions/record.ts';
import { Count } from './bounds.ts';
import { FilesManifest } from './chunks.ts';
import { OpenEnum } from './open-enum.ts';

/** In this header, a runtime host passes on the token of the client for whom it asks for a session. */
export const SESSION_TOKEN_HEADER = 'x-svc-session-token';

/**
 * `GET /internal/v1/sessions/{chat_session_id}` of the control plane, for a runtime host with the token of a client in the
 * header {@link SESSION_TOKEN_HEADER}: the owner and the worker of the session. 401 `unauthorized` for a token that is missing,
 * malformed, foreign or expired, and for an unknown session; 403 `session_token_mismatch` and `session_of_another_tenant` for a
 * token of another session or account.
 */
export const SessionRoute = Type.Object({
  chat_session_id: Type.String(),
  tenant_id: Type.String(),
  user_id: Type.String(),
  app_id: Type.String(),
  set_id: Type.String(),
  cua_enabled: Type.Boolean(),
  status: OpenEnum(SESSION_STATUSES),
  expires_at: Type.String(),
  /** Absent without a running sandbox. */
  worker: Type.Optional(
    Type.Object({
      worker_id: Type.String(),
      url: Type.String(),
      certificate: Type.String(),
      vm_id: Type.String(),
      /** The hop token: lets the bearer attach to this session at this worker within a minute. */
      token: Type.Optional(Type.String()),
    }),
  ),
});
export type SessionRoute = Static<typeof SessionRoute>;

/**
 * `POST /internal/v1/sessions/{chat_session_id}/recover` of the control plane, for a runtime host that cannot reach the
 * worker of a session: starts it elsewhere if that worker is lost. 200 with the {@link SessionRoute} afterwards, which is
 * the same as before if it is not; otherwise the errors of a resume.
 */

/** `GET /internal/v1/sessions/{chat_session_id}/ws?after_seq=N` of a worker: the upgrade, with a hop token. */
export const SessionSocketQuery = Type.Object({
  after_seq: Type.Optional(Type.Integer({ minimum: 0 })),
});
export type SessionSocketQuery = Static<typeof SessionSocketQuery>;

/** Whoever numbers the frames of one start of a session, under an id of its own. */
const Numberer = Type.String({ format: 'uuid' });

/**
 * `POST /internal/v1/sessions/{chat_session_id}/frame-numbers` of the control plane: reserves numbers for the frames of
 * a session before any of them is shown, so that no later start uses them again, even if this one is lost with
 * everything that it has shown. Repeating a request changes nothing. Refused with 409 `stale_generation` when a newer
 * start of the session exists, and to all but the last numberer to start.
 */
export const ReserveFramesRequest = Type.Object({
  generation: Count(1),
  vm_id: Type.String(),
  numberer: Numberer,
  /** Extends the reservation beyond this number. Absent: the numberer starts. */
  after: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
});
export type ReserveFramesRequest = Static<typeof ReserveFramesRequest>;

/** The numberer may use the numbers above `base_seq`, up to and including `reserved_seq`. */
export const ReservedFrames = Type.Object({
  base_seq: Type.Integer({ minimum: 0 }),
  reserved_seq: Type.Integer({ minimum: 0 }),
});
export type ReservedFrames = Static<typeof ReservedFrames>;

/**
 * `POST /internal/v1/sessions/{chat_session_id}/turns` of the control plane: commits the results of a finished turn
 * (or of the end of the sandbox) atomically. Refused with 409 `stale_generation` when a newer start of the session
 * exists. `frames` are the stored frames since the last commit, one JSON object per line.
 */
export const CommitTurnRequest = Type.Object({
  generation: Count(1),
  vm_id: Type.String(),
  first_seq: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  /** The highest seq assigned so far; `first_seq - 1` without frames. */
  last_seq: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  frames: Type.String(),
  /** The agent's own opaque record of the conversation; absent if unchanged. */
  conversation: Type.Optional(Type.String()),
  /** The numberer of this start, when it will number no more frames: the next start continues after `last_seq`. */
  last_of: Type.Optional(Numberer),
  /** Id of the working files after the turn, a new one for each save; absent if they are unchanged. */
  files_id: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9._-]{1,128}$' })),
  /** What these files are. Unless all its chunks are stored, 404 `file_not_found`, and the turn is not committed. */
  manifest: Type.Optional(FilesManifest),
});
export type CommitTurnRequest = Static<typeof CommitTurnRequest>;

/**
 * `GET /internal/v1/sessions/{chat_session_id}/files/{files_id}` of the control plane: a tar of the agent's home
 * directory as `application/octet-stream`, for files that were stored before there were chunks.
 */
export const SessionFilesParams = Type.Object({ id: Type.String(), files_id: Type.String() });
export type SessionFilesParams = Static<typeof SessionFilesParams>;

/** `GET /internal/v1/sessions/{chat_session_id}/state` of the control plane: the starting point of a resumed session. */
export const SessionState = Type.Object({
  generation: Type.Integer(),
  last_seq: Type.Integer({ minimum: 0 }),
  conversation: Type.Optional(Type.String()),
  files_id: Type.Optional(Type.String()),
  /** The working files `files_id`. Absent for files that were stored before there were chunks. */
  manifest: Type.Optional(FilesManifest),
  /** The latest stored frames, one JSON object per line, for clients that reconnect with `after_seq`. */
  frames: Type.String(),
  /** The first seq in `frames`; earlier frames can no longer be replayed. */
  first_seq: Type.Integer({ minimum: 1 }),
});
export type SessionState = Static<typeof SessionState>;
