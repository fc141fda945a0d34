import type { Kysely } from 'kysely';
import type { Schema } from '../../schema.ts';
import { type AutoTopup, autoTopup, balance, setAutoTopup } from './accounts.ts';
import {
  beginCheckout,
  findCheckout,
  type NewCheckout,
  noteProviderId,
  type OpenCheckout,
  payCheckout,
  removeUnpaidCheckouts,
} from './checkouts.ts';
import {
  type CreditNotice,
  claimOverdue,
  claimUntold,
  noteTold,
  updateNotices,
} from './credit-notices.ts';
import { addEntry, listEntries, type NewEntry, type Transaction } from './entries.ts';
import { openAccounts } from './grants.ts';
import { findUnposted, postUsage } from './posting.ts';
import {
  applyEvent,
  type EventOutcome,
  findCustomer,
  noteCustomer,
  type ProviderEvent,
  removeOldEvents,
} from './provider-events.ts';
import {
  beginTopups,
  type ClaimedTopup,
  claimTopups,
  completeTopup,
  failTopup,
  findStaleTopups,
  postponeTopup,
  type TopupFailure,
  type TopupRules,
} from './topups.ts';

/** Money: a ledger that only grows, and the balances that are its sums. Amounts are in cents. */
export class BillingRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** See {@link balance}. */
  balance(tenantId: string): Promise<number> {
    return balance(this.#db, tenantId);
  }

  /** See {@link autoTopup}. */
  autoTopup(tenantId: string): Promise<AutoTopup> {
    return autoTopup(this.#db, tenantId);
  }

  /** See {@link setAutoTopup}. */
  setAutoTopup(tenantId: string, settings: AutoTopup): Promise<void> {
    return setAutoTopup(this.#db, tenantId, settings);
  }

  /** See {@link addEntry}. */
  add(entry: NewEntry): Promise<boolean> {
    return addEntry(this.#db, entry);
  }

  /** See {@link listEntries}. */
  list(tenantId: string, page: { limit: number; offset: number }): Promise<Transaction[]> {
    return listEntries(this.#db, tenantId, page);
  }

  /** See {@link openAccounts}. */
  openAccounts(grantCents: number, limit: number): Promise<number> {
    return openAccounts(this.#db, grantCents, limit);
  }

  /** See {@link beginCheckout}. */
  beginCheckout(checkout: NewCheckout): Promise<void> {
    return beginCheckout(this.#db, checkout);
  }

  /** See {@link noteProviderId}. */
  noteProviderId(checkoutId: string, providerId: string): Promise<void> {
    return noteProviderId(this.#db, checkoutId, providerId);
  }

  /** See {@link findCheckout}. */
  findCheckout(pageHash: Buffer): Promise<OpenCheckout | undefined> {
    return findCheckout(this.#db, pageHash);
  }

  /** See {@link payCheckout}. */
  payCheckout(checkout: Pick<NewCheckout, 'checkoutId' | 'provider' | 'amount'>): Promise<boolean> {
    return payCheckout(this.#db, checkout);
  }

  /** See {@link removeUnpaidCheckouts}. */
  removeUnpaidCheckouts(olderThanSeconds: number, limit: number): Promise<number> {
    return removeUnpaidCheckouts(this.#db, olderThanSeconds, limit);
  }

  /** See {@link findCustomer}. */
  findCustomer(tenantId: string): Promise<string | undefined> {
    return findCustomer(this.#db, tenantId);
  }

  /** See {@link noteCustomer}. */
  noteCustomer(tenantId: string, customer: string): Promise<string> {
    return noteCustomer(this.#db, tenantId, customer);
  }

  /** See {@link applyEvent}. */
  applyEvent(event: ProviderEvent): Promise<EventOutcome> {
    return applyEvent(this.#db, event);
  }

  /** See {@link removeOldEvents}. */
  removeOldEvents(olderThanSeconds: number, limit: number): Promise<number> {
    return removeOldEvents(this.#db, olderThanSeconds, limit);
  }

  /** See {@link beginTopups}. */
  beginTopups(rules: TopupRules): Promise<number> {
    return beginTopups(this.#db, rules);
  }

  /** See {@link claimTopups}. */
  claimTopups(limit: number, seconds: number): Promise<ClaimedTopup[]> {
    return claimTopups(this.#db, limit, seconds);
  }

  /** See {@link completeTopup}. */
  completeTopup(topup: { topupId: string; amount: number }): Promise<boolean> {
    return completeTopup(this.#db, topup);
  }

  /** See {@link failTopup}. */
  failTopup(failure: TopupFailure): ReturnType<typeof failTopup> {
    return failTopup(this.#db, failure);
  }

  /** See {@link postponeTopup}. */
  postponeTopup(topupId: string, seconds: number): Promise<void> {
    return postponeTopup(this.#db, topupId, seconds);
  }

  /** See {@link findStaleTopups}. */
  findStaleTopups(olderThanSeconds: number): Promise<string[]> {
    return findStaleTopups(this.#db, olderThanSeconds);
  }

  /** See {@link findUnposted}. */
  findUnposted(limit: number, after = ''): Promise<string[]> {
    return findUnposted(this.#db, limit, after);
  }

  /** See {@link postUsage}. */
  postUsage(tenantId: string, limit: number): Promise<number> {
    return postUsage(this.#db, tenantId, limit);
  }

  /** See {@link updateNotices}. */
  updateNotices(): Promise<void> {
    return updateNotices(this.#db);
  }

  /** See {@link claimUntold}. */
  claimUntold(limit: number, seconds: number): Promise<CreditNotice[]> {
    return claimUntold(this.#db, limit, seconds);
  }

  /** See {@link claimOverdue}. */
  claimOverdue(limit: number, seconds: number): Promise<CreditNotice[]> {
    return claimOverdue(this.#db, limit, seconds);
  }

  /** See {@link noteTold}. */
  noteTold(vmId: string, graceSeconds: number): Promise<void> {
    return noteTold(this.#db, vmId, graceSeconds);
  }
}
