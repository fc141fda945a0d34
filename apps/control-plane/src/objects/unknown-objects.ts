import type { ObjectStore } from '@svc/object-store';
import type { ChunkRepository } from '@svc/store';
import { within } from './within.ts';

/** Objects in one page of a listing. */
const PAGE = 1_000;
/** Pages of one call. */
const PAGES = 20;

/** Objects of one kind: those under a prefix whose keys match. */
export interface ObjectKind {
  readonly prefix: string;
  /** Default: all keys with the prefix. */
  readonly isOne?: (key: string) => boolean;
  readonly chunks: Pick<ChunkRepository, 'known'>;
}

/**
 * Finds objects that the ledger does not know, such as that of an upload which ended after its chunk was given up. It
 * goes through all objects a few pages at a time. Any number of control planes may do so at once.
 */
export class UnknownObjects {
  readonly #objects: Pick<ObjectStore, 'delete' | 'list'>;
  readonly #kind: ObjectKind;
  /** Where the next call goes on. */
  #after: string | undefined;

  constructor(objects: Pick<ObjectStore, 'delete' | 'list'>, kind: ObjectKind) {
    this.#objects = objects;
    this.#kind = kind;
  }

  /** Deletes those older than this that the next pages have. Returns their number. */
  async remove(olderThanSeconds: number, signal: AbortSignal): Promise<number> {
    let removed = 0;
    for (let page = 0; page < PAGES; page += 1) {
      const found = await this.#nextPage(signal);
      const newest = Date.now() - olderThanSeconds * 1000;
      const keys = found.filter(({ modifiedAt }) => +modifiedAt < newest).map(({ key }) => key);
      const known = new Set(keys.length === 0 ? [] : await this.#kind.chunks.known(keys));
      const unknown = keys.filter((key) => !known.has(key));
      if (unknown.length > 0) {
        await within(signal, (limit) => this.#objects.delete(unknown, limit));
      }
      removed += unknown.length;
      if (this.#after === undefined) break;
    }
    return removed;
  }

  async #nextPage(signal: AbortSignal) {
    const { prefix, isOne } = this.#kind;
    const listing = { prefix, after: this.#after, limit: PAGE };
    const { objects, next } = await within(signal, (limit) => this.#objects.list(listing, limit));
    this.#after = next;
    return isOne === undefined ? objects : objects.filter(({ key }) => isOne(key));
  }
}
