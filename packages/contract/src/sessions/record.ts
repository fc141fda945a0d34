/** Sessions as shown by the API. */

import { type Static, Type } from 'typebox';
import { AGENTS } from '../agents.ts';
import { SandboxId } from '../ids.ts';
import { Timestamp } from '../schema.ts';

/** `completed`: its sandbox ended normally; `expired`: it ran out of time. The last three states can be resumed, until the session is erased. */
export const SESSION_STATUSES = ['active', 'completed', 'failed', 'expired'] as const;
export type SessionStatus = (typeof SESSION_STATUSES)[number];

export const SessionId = Type.String({
  description: 'Session identifier, a UUID.',
  examples: ['019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b'],
});

/** The response of create, with everything a client needs to attach. */
export const SessionAccess = Type.Object(
  {
    chat_session_id: SessionId,
    jwt: Type.String({ description: 'Opens the WebSocket. Lives about as long as the session.' }),
    connect_url: Type.String({ format: 'uri', description: 'WSS URL of the session.' }),
    expires_at: Timestamp,
  },
  { title: 'SessionAccess' },
);
export type SessionAccess = Static<typeof SessionAccess>;

export const ResumedSession = Type.Object(
  {
    ...SessionAccess.properties,
    resumed_from: Type.Object({
      previous_status: Type.Enum([...SESSION_STATUSES, 'unknown']),
    }),
  },
  { title: 'ResumedSession' },
);
export type ResumedSession = Static<typeof ResumedSession>;

/** A part of the size that the sandboxes of a session get. */
const givenSize = (what: string) =>
  Type.Optional(
    Type.Integer({ description: `${what}; absent when the request left it to the defaults.` }),
  );

/** When what the session kept was erased. */
const ErasedAt = Type.String({
  format: 'date-time',
  description:
    'When the conversation, the files and the frames were erased; from then on the session cannot be resumed.',
});

export const SessionRecord = Type.Object(
  {
    chat_session_id: SessionId,
    status: Type.Enum([...SESSION_STATUSES]),
    vm_id: Type.Optional(SandboxId),
    agent: Type.Object({
      kind: Type.Enum([...AGENTS]),
      version: Type.Optional(Type.String()),
    }),
    app: Type.Object({ id: Type.String(), set_id: Type.String() }),
    template: Type.String(),
    vcpu: givenSize('Virtual CPUs'),
    memory_mib: givenSize('Memory in MiB'),
    disk_mib: givenSize('Disk in MiB'),
    llm: Type.Object({ vendor: Type.String(), model: Type.Optional(Type.String()) }),
    user_id: Type.String(),
    created_at: Timestamp,
    expires_at: Timestamp,
    ended_at: Type.Optional(Timestamp),
    erased_at: Type.Optional(ErasedAt),
  },
  { title: 'Session' },
);
export type SessionRecord = Static<typeof SessionRecord>;

export const ListSessionsQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
  offset: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
});
export type ListSessionsQuery = Static<typeof ListSessionsQuery>;

export const ListSessionsResponse = Type.Object({
  sessions: Type.Array(SessionRecord),
  total: Type.Integer(),
});
export type ListSessionsResponse = Static<typeof ListSessionsResponse>;

export const DeleteSessionQuery = Type.Object({
  erase: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'Also erases the conversation, the files and the frames at once. The session cannot be resumed then.',
    }),
  ),
});
export type DeleteSessionQuery = Static<typeof DeleteSessionQuery>;

export const DeleteSessionResponse = Type.Object({
  chat_session_id: SessionId,
  status: Type.Enum([...SESSION_STATUSES]),
  erased_at: Type.Optional(ErasedAt),
});
export type DeleteSessionResponse = Static<typeof DeleteSessionResponse>;

/** Path parameters below `/v1/sessions/{id}`. A malformed id is 404 like any unknown one, never 400. */
export const SessionParams = Type.Object({ id: SessionId });
export type SessionParams = Static<typeof SessionParams>;
