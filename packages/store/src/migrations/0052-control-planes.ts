import { type Kysely, sql } from 'kysely';

/** The control planes that are alive, and what versions the schema is for: see `contraction.ts`. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create table control_planes (
         control_plane_id uuid primary key,
         knows text[] not null,
         heartbeat_at timestamptz not null default now()
       );
       create table schema_contractions (
         migration text primary key,
         needs text not null
       )`,
    )
    .execute(db);
}
