import { type Kysely, sql } from 'kysely';

/** Conversations and frames as chunks in the object store. Those that are in the database are moved or replaced later. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [CHUNKS, CONVERSATIONS, FRAMES]) await sql.raw(statement).execute(db);
}

const CHUNKS = `
  -- Whether the chunk is part of the conversation or the frames. The others are of the files.
  alter table session_chunks add column of_transcript boolean not null default false;
  create index session_chunks_transcript on session_chunks (session_id) where of_transcript;`;

const CONVERSATIONS = `
  alter table sessions
    -- The ids of the chunks of the conversation, 32 bytes each, in order. Void while the column conversation has one.
    add column conversation_chunks bytea check (octet_length(conversation_chunks) % 32 = 0),
    -- The size of their content.
    add column conversation_bytes bigint,
    -- When the transcript of the ended session was moved to the object store; absent since the last turn.
    add column archived_at timestamptz(3),
    -- Until then one control plane is trying to.
    add column archiving_until timestamptz(3);
  create index sessions_unarchived on sessions (ended_at)
    where ended_at is not null and archived_at is null and erased_at is null;`;

const FRAMES = `
  alter table session_frames
    alter column frames drop not null,
    -- The ids of the chunks of the frames that are not in the column frames.
    add column chunk_ids bytea check (octet_length(chunk_ids) % 32 = 0),
    -- The size of their content.
    add column size_bytes bigint,
    add check ((frames is null) = (chunk_ids is not null and size_bytes is not null));`;
