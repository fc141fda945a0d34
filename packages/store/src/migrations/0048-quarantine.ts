import { type Kysely, sql } from 'kysely';

/** Sandboxes that workers hold and a restored ledger does not know, and those that the ledger itself has removed. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of TABLES) await sql.raw(statement).execute(db);
}

const TABLES = [
  `create table quarantined_sandboxes (
     vm_id text not null,
     worker_id text not null,
     generation integer not null,
     tenant_id text not null,
     report json not null,
     end_requested boolean not null default false,
     quarantined_at timestamptz not null default now(),
     seen_at timestamptz not null default now(),
     primary key (vm_id, worker_id)
   )`,
  `create index quarantined_sandboxes_worker on quarantined_sandboxes (worker_id)`,
  `create table forgotten_sandboxes (
     vm_id text primary key,
     generation integer not null,
     forgotten_at timestamptz not null default now()
   )`,
  `create index forgotten_sandboxes_age on forgotten_sandboxes (forgotten_at)`,
];
