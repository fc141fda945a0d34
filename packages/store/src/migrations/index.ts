import type { Migration } from 'kysely';
import * as ledger from './0001-ledger.ts';
import * as accounts from './0002-accounts.ts';
import * as sessions from './0003-sessions.ts';
import * as placement from './0004-placement.ts';

/** All migrations by name, in the order in which they run. A released migration never changes its name or contents. */
export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-ledger': ledger,
  '0002-accounts': accounts,
  '0003-sessions': sessions,
  '0004-placement': placement,
};
