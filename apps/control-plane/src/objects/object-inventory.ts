import type { ObjectStore } from '@svc/object-store';
import { Counter, type Registry } from '@svc/service-kit';
import { Slots } from '@svc/service-kit/concurrency';
import type { ChunkRepository, KeyRange, ObjectDeletionRepository } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import { within } from './within.ts';

/** Objects in one page of a listing, and chunks that are looked up for one. */
const PAGE = 1_000;
/** Pages of one call. */
const PAGES = 20;
const LOOKUPS_AT_ONCE = 16;
/** How long objects that the ledger does not know are kept: their own ledger may come back from a backup. */
const KEPT_SECONDS = 7 * 24 * 3_600;
/** After every key with the prefix before it. */
const LAST_KEY = '\u{10ffff}';
/** Keys in one line of the log. */
const LOGGED_KEYS = 5;

export interface ObjectInventoryParts {
  readonly objects: Pick<ObjectStore, 'list' | 'head'>;
  readonly deletions: Pick<ObjectDeletionRepository, 'giveUpUnknown'>;
  /** Undefined if no object with the prefix is a chunk. */
  readonly chunks: Pick<ChunkRepository, 'unlisted' | 'noteLost' | 'noteFound'> | undefined;
  /** Of the keys of the objects. */
  readonly prefix: string;
  readonly lostChunks: Pick<Counter, 'inc'>;
  readonly logger: Pick<FastifyBaseLogger, 'error'>;
}

/** Counts the chunks whose objects were found to be missing. */
export function createLostChunksCounter(registry: Registry): Counter {
  return new Counter({
    name: 'svc_object_store_lost_chunks_total',
    help: 'Chunks of saved files and transcripts that are missing from the object store.',
    registers: [registry],
  });
}

/**
 * Compares the objects with the ledger, a few pages at a time. It gives up objects that the ledger does not know, such as
 * that of an upload which ended after its chunk was given up. It notes chunks whose objects are missing, so that the next
 * save of the same bytes uploads them again instead of relying on them. Any number of control planes may do so at once.
 */
export class ObjectInventory {
  readonly #parts: ObjectInventoryParts;
  /** Where the next call goes on. */
  #after: string | undefined;

  constructor(parts: ObjectInventoryParts) {
    this.#parts = parts;
  }

  /**
   * Compares the next pages. Objects and chunks that are younger than this may still be in use by what made them, and are
   * left out. Unknown objects are deleted a week later. Returns their number.
   */
  async compare(olderThanSeconds: number, signal: AbortSignal): Promise<number> {
    let givenUp = 0;
    for (let page = 0; page < PAGES; page += 1) {
      givenUp += await this.#comparePage(olderThanSeconds, signal);
      if (this.#after === undefined) break;
    }
    return givenUp;
  }

  async #comparePage(olderThanSeconds: number, signal: AbortSignal): Promise<number> {
    const { objects: store, deletions, prefix } = this.#parts;
    const listing = { prefix, after: this.#after, limit: PAGE };
    const { objects, next } = await within(signal, (limit) => store.list(listing, limit));
    const range = { after: this.#after ?? prefix, last: next ?? prefix + LAST_KEY };
    const keys = objects.map(({ key }) => key);
    await this.#noteLost(range, keys, olderThanSeconds, signal);
    this.#after = next;
    const newest = Date.now() - olderThanSeconds * 1000;
    const old = objects.filter(({ modifiedAt }) => +modifiedAt < newest).map(({ key }) => key);
    return old.length === 0 ? 0 : deletions.giveUpUnknown(old, KEPT_SECONDS);
  }

  async #noteLost(
    range: KeyRange,
    listed: readonly string[],
    olderThanSeconds: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { chunks, lostChunks, logger } = this.#parts;
    if (chunks === undefined) return;
    await chunks.noteFound(listed);
    const unlisted = await chunks.unlisted(range, listed, olderThanSeconds, PAGE);
    if (unlisted.length === 0) return;
    const missing = await this.#missing(unlisted, signal);
    const count = await chunks.noteLost(missing, olderThanSeconds);
    if (count === 0) return;
    lostChunks.inc(count);
    logger.error(
      { chunks: count, keys: missing.slice(0, LOGGED_KEYS) },
      'objects are missing from the object store: what only they had cannot be read; ' +
        'see "Lost objects" in docs/operations.md',
    );
  }

  /** Which of these objects do not exist. A listing may have been incomplete. */
  async #missing(keys: readonly string[], signal: AbortSignal): Promise<string[]> {
    const slots = new Slots(LOOKUPS_AT_ONCE);
    return within(signal, async (limit) => {
      const lookups = keys.map((key) =>
        slots.run(() => this.#parts.objects.head(key, limit), limit),
      );
      const found = await Promise.all(lookups);
      return keys.filter((_, at) => found[at] === undefined);
    });
  }
}
