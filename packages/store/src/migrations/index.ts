import type { Migration } from 'kysely';
import * as ledger from './0001-ledger.ts';
import * as accounts from './0002-accounts.ts';
import * as sessions from './0003-sessions.ts';
import * as placement from './0004-placement.ts';

/** Every migration by name, in the order they run. Names and contents never change once released. */
export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-ledger': ledger,
  '0002-accounts': accounts,
  '0003-sessions': sessions,
  '0004-placement': placement,
};
