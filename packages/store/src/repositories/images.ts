import { type Kysely, sql } from 'kysely';
import { lockName } from '../advisory-lock.ts';
import { ago } from '../remove-batch.ts';
import type { Schema } from '../schema.ts';

/** A worker that was heard of within this time may need its images again. */
const LIVE_WORKER_SECONDS = 24 * 3600;

/** Which image: the digest of its recipe, and a processor as in Node's `process.arch`. */
export interface ImageName {
  readonly template: string;
  readonly imageId: string;
  readonly arch: string;
}

export interface ImageBlob {
  /** SHA-256 of the object. */
  readonly id: Buffer;
  readonly objectKey: string;
  readonly bytes: number;
}

export interface StoredImage extends ImageName {
  /** The blob with the signed manifest. */
  readonly manifestId: Buffer;
  readonly manifestBytes: number;
  /** Digest of what the manifest says about content. */
  readonly contentId: Buffer;
  /** The public key that it is signed with. */
  readonly signer: string;
}

export interface NewImage extends Omit<StoredImage, 'manifestBytes'> {
  /** The oldest version of svc that may use it. */
  readonly svcFrom: string;
  /** All blobs that it contains, that of the manifest included. */
  readonly blobs: readonly Buffer[];
}

/** An image in the store, for its operator. */
export interface ListedImage {
  readonly template: string;
  readonly image: string;
  readonly arch: string;
  /** SHA-256 of the signed manifest. */
  readonly manifest: string;
  readonly signer: string;
  readonly svc_from: string;
  readonly pushed_at: Date;
  /** Of its blobs, of which other images may have some too. */
  readonly bytes: number;
  /** Workers that reported it within a day. */
  readonly workers: number;
}

/**
 * The VM images in the object store: their signed manifests, and the objects with their blobs. The database, and not the
 * object store, says which manifest is the current one.
 */
export class ImageRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** The object of a blob, if it is stored. It stays so for as long as if it had just been. */
  async renew(id: Buffer): Promise<string | undefined> {
    const row = await this.#db
      .updateTable('image_blobs')
      .set({ wanted_at: sql`now()` })
      .where('blob_id', '=', id)
      .where('stored_at', 'is not', null)
      .returning('object_key')
      .executeTakeFirst();
    return row?.object_key;
  }

  /**
   * Gives up the damaged object of a blob, which is then not stored until the upload to `newKey` has ended. Does nothing if
   * the blob has another object by now.
   */
  async replaceObject(damagedKey: string, newKey: string): Promise<void> {
    await sql`
      with replaced as (
        update image_blobs set object_key = ${newKey}, stored_at = null, wanted_at = now()
        where object_key = ${damagedKey} returning blob_id)
      insert into object_deletions (object_key) select ${damagedKey} from replaced
      on conflict do nothing`.execute(this.#db);
  }

  /** Notes an upload before it begins. Returns the key for it: that of an earlier upload which has not ended, if there is one. */
  async announce({ id, objectKey, bytes }: ImageBlob): Promise<string> {
    const row = await this.#db
      .insertInto('image_blobs')
      .values({ blob_id: id, object_key: objectKey, stored_bytes: bytes, stored_at: null })
      .onConflict((conflict) => conflict.column('blob_id').doUpdateSet({ wanted_at: sql`now()` }))
      .returning('object_key')
      .executeTakeFirstOrThrow();
    return row.object_key;
  }

  /** Notes that an upload has ended. Does nothing for one that was given up meanwhile. */
  async confirm(objectKey: string): Promise<void> {
    await this.#db
      .updateTable('image_blobs')
      .set({ stored_at: sql`coalesce(stored_at, now())`, wanted_at: sql`now()` })
      .where('object_key', '=', objectKey)
      .execute();
  }

  /** Makes an image the one that workers get. @throws Error, without any effect, when one of its blobs is not stored */
  async publish({ template, imageId, arch, blobs, ...image }: NewImage): Promise<void> {
    const key = { template, image_id: imageId, arch };
    const content = {
      manifest_id: image.manifestId,
      content_id: image.contentId,
      signer: image.signer,
      svc_from: image.svcFrom,
    };
    const ids = [...blobs].sort(Buffer.compare);
    await this.#db.transaction().execute(async (transaction) => {
      // Changes the rows, so that a removal that has chosen them looks again.
      const { rows } = await sql`
        with named as materialized (
          select blob_id from image_blobs where blob_id = any(${ids}::bytea[]) and stored_at is not null
          order by blob_id for no key update)
        update image_blobs set wanted_at = now() from named
        where image_blobs.blob_id = named.blob_id returning image_blobs.blob_id`.execute(
        transaction,
      );
      if (rows.length !== ids.length) throw new Error('a blob of the image is not stored any more');
      await transaction
        .insertInto('images')
        .values({ ...key, ...content })
        .onConflict((conflict) =>
          conflict
            .columns(['template', 'image_id', 'arch'])
            .doUpdateSet({ ...content, pushed_at: sql`now()` }),
        )
        .execute();
      await sql`
        with given_up as (
          delete from image_blob_uses
          where template = ${template} and image_id = ${imageId} and arch = ${arch}
            and blob_id <> all(${ids}::bytea[])
          returning blob_id)
        update image_blobs set wanted_at = now() from given_up
        where image_blobs.blob_id = given_up.blob_id`.execute(transaction);
      await sql`
        insert into image_blob_uses (template, image_id, arch, blob_id)
        select ${template}, ${imageId}, ${arch}, unnest(${ids}::bytea[])
        on conflict do nothing`.execute(transaction);
    });
  }

  async find({ template, imageId, arch }: ImageName): Promise<StoredImage | undefined> {
    return this.#db
      .selectFrom('images')
      .innerJoin('image_blobs', 'blob_id', 'manifest_id')
      .select([
        'template',
        'image_id as imageId',
        'arch',
        'manifest_id as manifestId',
        'stored_bytes as manifestBytes',
        'content_id as contentId',
        'signer',
      ])
      .where('template', '=', template)
      .where('image_id', '=', imageId)
      .where('arch', '=', arch)
      .executeTakeFirst();
  }

  /** Which of these blobs are stored as part of an image, and where. */
  async objects(ids: readonly Buffer[]): Promise<ImageBlob[]> {
    const { rows } = await sql<ImageBlob>`
      select blob_id as id, object_key as "objectKey", stored_bytes as bytes from image_blobs
      where blob_id = any(${ids}::bytea[]) and stored_at is not null
        and exists (select from image_blob_uses uses where uses.blob_id = image_blobs.blob_id)`.execute(
      this.#db,
    );
    return rows;
  }

  /** Every stored image, by template, the newest first. */
  async list(): Promise<ListedImage[]> {
    const { rows } = await sql<ListedImage>`
      select template, image_id as image, arch, encode(manifest_id, 'hex') as manifest, signer, svc_from,
        pushed_at,
        (select coalesce(sum(stored_bytes), 0)::float8 from image_blob_uses uses
          join image_blobs using (blob_id)
          where uses.template = images.template and uses.image_id = images.image_id
            and uses.arch = images.arch) as bytes,
        (select count(*)::int from workers where ${isLive()} and ${hasImage()}) as workers
      from images order by template, pushed_at desc`.execute(this.#db);
    return rows;
  }

  /** Bytes of all blobs, those that no image contains included. */
  async bytes(): Promise<number> {
    const { rows } = await sql<{ bytes: number }>`
      select coalesce(sum(stored_bytes), 0)::float8 as bytes from image_blobs`.execute(this.#db);
    return rows[0]?.bytes ?? 0;
  }

  /** Removes an image, whose blobs go later. False if there is none, or if a worker has reported it within a day. */
  async remove({ template, imageId, arch }: ImageName): Promise<boolean> {
    const { rows } = await sql`
      with removed as (
        delete from images
        where template = ${template} and image_id = ${imageId} and arch = ${arch}
          and not exists (select from workers where ${isLive()} and ${hasImage()})
        returning template, image_id, arch),
      ${unwantedBlobs()}
      select template from removed`.execute(this.#db);
    return rows.length === 1;
  }

  /**
   * If the images have more than `budgetBytes`, removes the one that was pushed first of those that are older than this and
   * not needed, and returns 1; otherwise 0. Needed are the newest of each template and processor, and those that a worker
   * reported within a day.
   */
  removeUnneeded(budgetBytes: number, olderThanSeconds: number): Promise<number> {
    return this.#db.transaction().execute(async (transaction) => {
      // Two at once would each remove one for the same excess.
      await lockName(transaction, 'image budget');
      return await removeFirstPushed(transaction, budgetBytes, olderThanSeconds);
    });
  }

  /**
   * Gives up blobs that no image contains and that no push has counted on for longer than this, and returns their number.
   * Their objects are to be deleted.
   */
  async removeUnusedBlobs(olderThanSeconds: number, limit: number): Promise<number> {
    const { numAffectedRows } = await sql`
      with unused as materialized (
        select blob_id from image_blobs
        where wanted_at < ${ago(olderThanSeconds)}
          and not exists (select from image_blob_uses uses where uses.blob_id = image_blobs.blob_id)
        order by wanted_at limit ${limit} for update skip locked),
      removed as (
        delete from image_blobs using unused where image_blobs.blob_id = unused.blob_id
        returning object_key)
      insert into object_deletions (object_key) select object_key from removed
      on conflict do nothing`.execute(this.#db);
    return Number(numAffectedRows ?? 0);
  }
}

function isLive() {
  return sql`removed_at is null and heartbeat_at > ${ago(LIVE_WORKER_SECONDS)}`;
}

/** Whether a worker reported an image. */
function hasImage() {
  return sql`workers.templates @> jsonb_build_array(
    jsonb_build_object('template', images.template, 'image', images.image_id))`;
}

/** The blobs of the images in `removed` are kept for a while, for pulls in progress. */
function unwantedBlobs() {
  return sql`unwanted as (
    update image_blobs set wanted_at = now() from image_blob_uses uses, removed
    where image_blobs.blob_id = uses.blob_id and uses.template = removed.template
      and uses.image_id = removed.image_id and uses.arch = removed.arch)`;
}

/** See `ImageRepository.removeUnneeded`. */
async function removeFirstPushed(
  db: Kysely<Schema>,
  budgetBytes: number,
  olderThanSeconds: number,
): Promise<number> {
  const { rows } = await sql`
      with chosen as (
        select template, image_id, arch from images
        where pushed_at < ${ago(olderThanSeconds)}
          and exists (select from images newer where newer.template = images.template
            and newer.arch = images.arch and newer.pushed_at > images.pushed_at)
          and not exists (select from workers where ${isLive()} and ${hasImage()})
          and (select coalesce(sum(stored_bytes), 0) from image_blobs
            where exists (select from image_blob_uses uses
              where uses.blob_id = image_blobs.blob_id)) > ${budgetBytes}
        order by pushed_at limit 1 for update),
      removed as (
        delete from images using chosen
        where images.template = chosen.template and images.image_id = chosen.image_id
          and images.arch = chosen.arch
        returning images.template, images.image_id, images.arch),
      ${unwantedBlobs()}
      select template from removed`.execute(db);
  return rows.length;
}
