import type { ObjectInfo, ObjectStore } from '@svc/object-store';
import type { ObjectDeletionRepository } from '@svc/store';
import { within } from './within.ts';

/** Objects in one page of a listing. */
const PAGE = 1_000;
/** Pages of one call. */
const PAGES = 20;
/** How long objects that the ledger does not know are kept: their own ledger may come back from a backup. */
const KEPT_SECONDS = 7 * 24 * 3_600;

export interface UnknownObjectsParts {
  readonly objects: Pick<ObjectStore, 'list'>;
  readonly deletions: Pick<ObjectDeletionRepository, 'giveUpUnknown'>;
  /** Of the keys of the objects. */
  readonly prefix: string;
}

/**
 * Gives up objects that the ledger does not know, such as that of an upload which ended after its chunk was given up. It
 * goes through all objects a few pages at a time. Any number of control planes may do so at once.
 */
export class UnknownObjects {
  readonly #parts: UnknownObjectsParts;
  /** Where the next call goes on. */
  #after: string | undefined;

  constructor(parts: UnknownObjectsParts) {
    this.#parts = parts;
  }

  /** Gives up those older than this that the next pages have. They are deleted a week later. Returns their number. */
  async giveUp(olderThanSeconds: number, signal: AbortSignal): Promise<number> {
    let givenUp = 0;
    for (let page = 0; page < PAGES; page += 1) {
      const found = await this.#nextPage(signal);
      const newest = Date.now() - olderThanSeconds * 1000;
      const keys = found.filter(({ modifiedAt }) => +modifiedAt < newest).map(({ key }) => key);
      if (keys.length > 0) {
        givenUp += await this.#parts.deletions.giveUpUnknown(keys, KEPT_SECONDS);
      }
      if (this.#after === undefined) break;
    }
    return givenUp;
  }

  async #nextPage(signal: AbortSignal): Promise<readonly ObjectInfo[]> {
    const { objects: store, prefix } = this.#parts;
    const listing = { prefix, after: this.#after, limit: PAGE };
    const { objects, next } = await within(signal, (limit) => store.list(listing, limit));
    this.#after = next;
    return objects;
  }
}
