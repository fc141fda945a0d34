/** The frames of a session's WebSocket, protocol `svc.v2`: one JSON object per text message. */

import { type Static, type TSchema, Type } from 'typebox';
import { LIMITS } from '../limits.ts';
import { mapOf } from '../schema.ts';
import { CANCEL_REASONS } from '../states.ts';

export const SESSION_PROTOCOL = 'svc.v2';

/** The client's own id for a request, repeated in the frames that answer it. */
const Id = Type.Optional(Type.String({ minLength: 1, maxLength: 128 }));
/** The agent that sent the frame, if there are several; absent in wire version 1. */
const Agent = Type.Optional(Type.String());

const frame = <const T extends string, P extends Record<string, TSchema>>(type: T, fields: P) =>
  Type.Object({ type: Type.Literal(type), ...fields });

export const ClientFrame = Type.Union([
  frame('task', { prompt: Type.String({ minLength: 1 }), id: Id }),
  frame('exec', { command: Type.String({ minLength: 1, maxLength: LIMITS.commandChars }), id: Id }),
  frame('interrupt', { id: Id }),
  frame('tool_call', { id: Id, name: Type.String(), arguments: mapOf<unknown>({}) }),
  /** Confirms the update of a live view with this number, and those before it. Nothing answers it. */
  frame('view_ack', { number: Type.Integer({ minimum: 0, maximum: 0xffff_ffff }) }),
  frame('ping', {}),
]);
export type ClientFrame = Static<typeof ClientFrame>;
/** A frame that reaches the agent runtime; the worker handles the others itself. */
export type ForwardedFrame = Exclude<ClientFrame, { type: 'ping' | 'view_ack' }>;
export const CLIENT_FRAME_TYPES = [
  'task',
  'exec',
  'interrupt',
  'tool_call',
  'view_ack',
  'ping',
] as const;

export const TASK_STATUSES = ['completed', 'failed', 'interrupted'] as const;

/** A frame from an agent. The worker validates it and adds `seq` and `ts`. */
export const AgentFrame = Type.Union([
  frame('task_started', { id: Id, agent: Agent }),
  frame('text_delta', { data: Type.String(), agent: Agent }),
  frame('message', {
    role: Type.Enum(['assistant', 'user']),
    content: Type.String(),
    agent: Agent,
  }),
  frame('tool_call', {
    id: Type.String(),
    name: Type.String(),
    arguments: Type.Unknown(),
    agent: Agent,
  }),
  frame('tool_result', {
    id: Type.String(),
    content: Type.String(),
    is_error: Type.Boolean(),
    agent: Agent,
  }),
  frame('task_completed', {
    id: Id,
    status: Type.Enum([...TASK_STATUSES]),
    result: Type.String(),
    agent: Agent,
  }),
  frame('stdout', { data: Type.String(), id: Id }),
  frame('stderr', { data: Type.String(), id: Id }),
  frame('exit', { exit_code: Type.Integer(), id: Id }),
  frame('error', {
    code: Type.String({ maxLength: 128 }),
    message: Type.String(),
    id: Id,
    agent: Agent,
  }),
]);
export type AgentFrame = Static<typeof AgentFrame>;

/** Frames that only the service itself sends, never a guest. */
export const ServiceFrame = Type.Union([
  frame('ready', {
    /** The kind of the agent; absent in wire version 1, like the `agent` of every frame. */
    agent: Type.Optional(Type.String()),
    model: Type.String(),
    resumed: Type.Boolean(),
    /** Rises with every start of the session. */
    generation: Type.Optional(Type.Integer({ minimum: 1 })),
    /** The connection is live after this number: that of the newest frame, or of none where the numbers jump. */
    last_seq: Type.Optional(Type.Integer({ minimum: 0 })),
  }),
  frame('usage', {
    input_tokens: Type.Integer(),
    output_tokens: Type.Integer(),
    cached_input_tokens: Type.Optional(Type.Integer()),
    model: Type.Optional(Type.String()),
  }),
  frame('system', { event: Type.Literal('cancel'), reason: Type.Enum([...CANCEL_REASONS]) }),
  frame('system', {
    event: Type.Literal('config_update'),
    /** Names of all keys of the rotated bundle. */
    keys: Type.Array(Type.String()),
    /** Absent, like the version, in frames that are older than the field. */
    bundle: Type.Optional(Type.String()),
    /** Increases with every rotation of the bundle. */
    version: Type.Optional(Type.Integer()),
  }),
  frame('pong', {}),
]);
export type ServiceFrame = Static<typeof ServiceFrame>;

/**
 * A frame as sent to clients. `seq` increases by one per session, across reconnects and resumes, and is never used
 * twice. `ready`, `pong` and errors about a client's own frame concern only one connection: they are not stored and
 * have no `seq`.
 */
export type ServerFrame = (AgentFrame | ServiceFrame) & {
  readonly seq?: number;
  /**
   * Only on a frame whose `seq` jumps, and on `ready` while the next frame will: the number of the stored frame before it.
   * Numbers in between may have been shown before the session lost its machine, but those frames were not saved.
   */
  readonly previous_seq?: number;
  readonly ts: string;
};

/** Codes of `error` frames. */
export const FRAME_ERRORS = {
  frame_invalid: 'The frame is no JSON object with a known type and its fields.',
  frame_too_large: 'The frame is larger than 1 MiB.',
  frame_binary: 'Only text frames are taken.',
  frame_rate: 'Too many frames; they were dropped.',
  busy: 'Eight tasks wait already.',
  task_not_accepted: 'This agent ends with the task of its sandbox; it takes no others.',
  tool_not_available: 'This session has no desktop to control.',
  model_not_allowed: 'The agent cannot use the model or the endpoint of a rotated bundle.',
  secrets_too_large:
    'The new values of the bundles are together too large for an environment; processes get the environment from before. Shorten values, and rotate again.',
  agent_failed: 'The agent has failed.',
  llm_unauthorized: 'The model vendor refused the key.',
  llm_rate_limited: 'The model vendor limits the rate; retries are used up.',
  llm_overloaded: 'The model vendor is overloaded; retries are used up.',
  llm_unavailable: 'The model endpoint does not answer.',
  llm_bad_response: 'The model endpoint sent what nobody can read.',
  llm_refused: 'The model endpoint refused the request.',
  turn_limit: 'The task used up its turns.',
  token_limit: 'The task used up its tokens.',
  state_not_saved: 'The state of the session could not be saved.',
  session_storage_full:
    'Changed files, or the conversation and the frames too, were not kept, because the sessions of the account keep as many bytes as they may. Erase a session; files and conversation are kept again with the next task.',
} as const;
export type FrameErrorCode = keyof typeof FRAME_ERRORS;
