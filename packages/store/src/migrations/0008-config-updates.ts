import { type Kysely, sql } from 'kysely';

/** Notices of rotated bundles, and bundle versions that no later bundle of the same name repeats. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [VERSIONS, UPDATES]) await sql.raw(statement).execute(db);
}

const VERSIONS = `
  create sequence secret_bundle_versions as integer;
  select setval('secret_bundle_versions', (select coalesce(max(version), 0) + 1 from secret_bundles));
  alter table secret_bundles alter column version set default nextval('secret_bundle_versions');`;

const UPDATES = `
  -- The newest rotation of a bundle that the worker of a session has to hear of.
  create table config_updates (
    vm_id text not null references sandboxes on delete cascade,
    bundle text not null,
    version integer not null,
    keys text[] not null,
    attempts integer not null default 0,
    -- Later than now while a control plane delivers it.
    due_at timestamptz(3) not null default now(),
    expires_at timestamptz(3) not null,
    outcome text check (outcome in ('delivered', 'ended', 'expired')),
    ended_at timestamptz(3),
    primary key (vm_id, bundle),
    check ((outcome is null) = (ended_at is null))
  );
  create index config_updates_due on config_updates (due_at) where outcome is null;
  create index config_updates_ended on config_updates (ended_at) where outcome is not null;`;
