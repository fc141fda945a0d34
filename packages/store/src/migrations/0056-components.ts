import { type Kysely, sql } from 'kysely';

/** The keys of workers and runtime hosts, and how often each enrolment token has been used. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create table components (
         component_id text primary key,
         kind text not null,
         key_id text not null,
         public_key text not null,
         enrolled_at timestamptz not null default now(),
         used_at timestamptz not null default now(),
         revoked_at timestamptz
       );
       create table enrolment_tokens (
         token_id uuid primary key,
         uses integer not null,
         expires_at timestamptz not null
       );
       create index on enrolment_tokens (expires_at)`,
    )
    .execute(db);
}
