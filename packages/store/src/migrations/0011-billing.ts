import { type Kysely, sql } from 'kysely';

/** The ledger of money, the accounts with its sums, and what payments and their enforcement have to remember. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [ACCOUNTS, ENTRIES, PAYMENTS, EVENTS, NOTICES]) {
    await sql.raw(statement).execute(db);
  }
}

const ACCOUNTS = `
  create table billing_accounts (
    tenant_id text primary key references tenants,
    -- The sum of the tenant's entries. A trigger on ledger_entries keeps it.
    balance_cents bigint not null default 0,
    -- Cost of usage that is posted, but not yet part of an entry because it is less than a cent.
    carry_microusd integer not null default 0 check (carry_microusd between 0 and 9999),
    auto_topup boolean not null default false,
    threshold_cents bigint not null default 0 check (threshold_cents >= 0),
    topup_cents bigint not null default 0 check (topup_cents >= 0),
    topup_failures integer not null default 0,
    last_topup_at timestamptz(3),
    -- The customer and the saved payment method at the payment provider.
    customer text,
    payment_method text,
    created_at timestamptz(3) not null default now()
  );`;

const ENTRIES = `
  -- An id from a UUID of version 7, which sorts by time. PostgreSQL has a function for it since version 18.
  create function new_transaction_id() returns text language sql volatile as $$
    select 'txn_' || lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
      || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14)
  $$;

  create table ledger_entries (
    entry_id text primary key default new_transaction_id(),
    -- The order of a tenant's entries.
    seq bigint generated always as identity,
    tenant_id text not null references tenants,
    amount_cents bigint not null check (amount_cents <> 0),
    kind text not null check (kind in ('grant', 'usage', 'purchase', 'topup', 'adjustment')),
    -- What the entry is for. At most one entry exists for it.
    reference text not null,
    description text not null,
    created_at timestamptz(3) not null default now(),
    unique (kind, reference),
    check (amount_cents > 0 or kind in ('usage', 'adjustment')),
    check (amount_cents < 0 or kind <> 'usage')
  );
  create unique index ledger_entries_tenant on ledger_entries (tenant_id, seq);

  create function add_entry_to_balance() returns trigger language plpgsql as $$
  begin
    insert into billing_accounts (tenant_id, balance_cents) values (new.tenant_id, new.amount_cents)
    on conflict (tenant_id) do update
      set balance_cents = billing_accounts.balance_cents + excluded.balance_cents;
    return null;
  end $$;
  create trigger ledger_entries_balance after insert on ledger_entries
    for each row execute function add_entry_to_balance();

  create function refuse_ledger_change() returns trigger language plpgsql as $$
  begin
    raise exception 'entries of the ledger are never changed or removed; add an adjustment instead';
  end $$;
  create trigger ledger_entries_unchanged before update or delete on ledger_entries
    for each row execute function refuse_ledger_change();
  create trigger ledger_entries_kept before truncate on ledger_entries
    for each statement execute function refuse_ledger_change();`;

const PAYMENTS = `
  -- A purchase that its customer begins.
  create table checkouts (
    checkout_id text primary key,
    tenant_id text not null references tenants,
    provider text not null check (provider in ('local', 'stripe')),
    amount_cents bigint not null check (amount_cents > 0),
    -- Hash of the token in the link to the page of a local checkout.
    page_hash bytea unique,
    -- The provider's own id of the checkout.
    provider_id text unique,
    created_at timestamptz(3) not null default now(),
    expires_at timestamptz(3) not null,
    paid_at timestamptz(3)
  );
  create index checkouts_expired on checkouts (expires_at) where paid_at is null;

  -- A charge of a saved payment method. Its id is the idempotency key at the provider.
  create table topups (
    topup_id text primary key,
    tenant_id text not null references tenants,
    amount_cents bigint not null check (amount_cents > 0),
    customer text not null,
    payment_method text not null,
    state text not null default 'pending' check (state in ('pending', 'succeeded', 'failed', 'unknown')),
    failure text,
    attempts integer not null default 0,
    -- Later than now while a control plane sends it.
    due_at timestamptz(3) not null default now(),
    created_at timestamptz(3) not null default now(),
    ended_at timestamptz(3),
    check ((state = 'pending') = (ended_at is null))
  );
  create unique index topups_pending on topups (tenant_id) where state = 'pending';
  create index topups_due on topups (due_at) where state = 'pending';`;

const EVENTS = `
  -- Events of the payment provider that have been applied.
  create table provider_events (
    event_id text primary key,
    type text not null,
    -- The checkout or top-up that the event has paid.
    kind text check (kind in ('purchase', 'topup')),
    reference text,
    received_at timestamptz(3) not null default now(),
    check ((kind is null) = (reference is null))
  );
  create index provider_events_received on provider_events (received_at);`;

const NOTICES = `
  -- Live sandboxes of accounts without credit.
  create table credit_notices (
    vm_id text primary key references sandboxes on delete cascade,
    attempts integer not null default 0,
    -- Later than now while a control plane acts on it.
    due_at timestamptz(3) not null default now(),
    -- When the sandbox ends, known once it was told.
    ends_at timestamptz(3),
    created_at timestamptz(3) not null default now()
  );
  create index credit_notices_due on credit_notices (due_at);`;
