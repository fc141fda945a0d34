import { hkdfSync } from 'node:crypto';
import type { Store } from '@svc/store';
import { makeTenantKey, openTenantKey } from './envelope.ts';
import type { MasterKeyring } from './master-keyring.ts';

const DERIVED_BYTES = 32;
/** A write starts over when the master key changes during it, which is rare. */
const WRITE_ATTEMPTS = 5;

/** The keys of tenants, one random key each, made when it is first needed. Only keys derived from them leave here. */
export class TenantKeys {
  readonly #store: Pick<Store, 'masterKeys' | 'tenantKeys'>;
  readonly #keyring: MasterKeyring;

  constructor(store: Pick<Store, 'masterKeys' | 'tenantKeys'>, keyring: MasterKeyring) {
    this.#store = store;
    this.#keyring = keyring;
  }

  /** A key of 32 bytes for one purpose. It is the same each time, and says nothing about other keys. */
  async derive(tenantId: string, purpose: string): Promise<Buffer> {
    const row = (await this.#store.tenantKeys.find(tenantId)) ?? (await this.#make(tenantId));
    const key = openTenantKey(row, await this.#keyring.require(row.master_key_id));
    try {
      return Buffer.from(hkdfSync('sha256', key, '', purpose, DERIVED_BYTES));
    } finally {
      key.fill(0);
    }
  }

  async #make(tenantId: string) {
    const { masterKeys, tenantKeys } = this.#store;
    for (let attempt = 0; attempt < WRITE_ATTEMPTS; attempt += 1) {
      const current = await masterKeys.current();
      if (current === undefined) throw new Error('The ledger names no current master key.');
      const wrappedKey = makeTenantKey(tenantId, await this.#keyring.require(current));
      const row = await tenantKeys.insert({ tenantId, wrappedKey, masterKeyId: current });
      if (row !== 'master_key_changed') return row;
    }
    throw new Error('The master key changes faster than the key of a tenant can be stored.');
  }
}
