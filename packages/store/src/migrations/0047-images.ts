import { type Kysely, sql } from 'kysely';

/** VM images in the object store. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [BLOBS, IMAGES, USES]) await sql.raw(statement).execute(db);
}

const BLOBS = `
  create table image_blobs (
    -- SHA-256 of the object.
    blob_id bytea primary key check (octet_length(blob_id) = 32),
    -- Never used for another upload, so that deleting an object cannot hit a newer one.
    object_key text not null unique,
    stored_bytes integer not null,
    -- Absent until the upload has ended.
    stored_at timestamptz(3),
    -- When a push last counted on it, or an image stopped to contain it.
    wanted_at timestamptz(3) not null default now()
  );
  create index image_blobs_age on image_blobs (wanted_at);`;

const IMAGES = `
  create table images (
    template text not null,
    -- Digest of the recipe.
    image_id text not null,
    arch text not null,
    -- The signed manifest.
    manifest_id bytea not null references image_blobs,
    -- Digest of what the manifest says about content, and the public key that it is signed with.
    content_id bytea not null,
    signer text not null,
    svc_from text not null,
    pushed_at timestamptz(3) not null default now(),
    primary key (template, image_id, arch)
  );`;

const USES = `
  create table image_blob_uses (
    template text not null,
    image_id text not null,
    arch text not null,
    blob_id bytea not null references image_blobs,
    primary key (template, image_id, arch, blob_id),
    foreign key (template, image_id, arch) references images on delete cascade
  );
  create index image_blob_uses_blob on image_blob_uses (blob_id);`;
