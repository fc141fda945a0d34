import type { KeyPair } from '@svc/service-kit';
import type pg from 'pg';
import type { FleetServer } from './fleet-server.ts';

/** What the ledger has before the load begins. */
export interface Size {
  readonly workers: number;
  /** Records of sandboxes, live and ended. */
  readonly rows: number;
}

/** Live sandboxes of each worker. */
export const LIVE_PER_WORKER = 10;
/** Tenants that send requests; as many sandboxes each. */
export const TENANTS = 10_000;
/** The API key of a tenant. */
export const keyOf = (tenant: number) => `svc_${tenant.toString(16).padStart(64, '0')}`;
/** The live sandboxes of a worker, from 0. */
export const sandboxesOf = (worker: number, { workers }: Size) =>
  Array.from({ length: LIVE_PER_WORKER }, (_, index) => worker + index * workers);

/**
 * Fills an empty ledger: `worker_<n>` with the sandboxes {@link sandboxesOf} `vm_<n>`, of the tenants `usr_<n mod TENANTS>`.
 * The other records are of sandboxes that ended within the last month. All workers have enrolled the same key.
 */
export async function fill(
  sql: pg.Client,
  size: Size,
  fleet: FleetServer,
  key: KeyPair,
): Promise<void> {
  await sql.query(
    `insert into tenants (tenant_id, email)
     select 'usr_' || n, n || '@example.com' from generate_series(0, $1::int - 1) n`,
    [TENANTS],
  );
  await sql.query(
    `insert into api_keys (key_id, tenant_id, prefix, secret_hash)
     select 'key_' || n, 'usr_' || n, 'svc_', sha256(('svc_' || lpad(to_hex(n), 64, '0'))::bytea)
     from generate_series(0, $1::int - 1) n`,
    [TENANTS],
  );
  await sql.query(
    `insert into workers (worker_id, url, certificate, version, vcpu, memory_mib, disk_mib,
       free_memory_mib, free_disk_mib, reserved_memory_mib, templates)
     select 'worker_' || n, $2, $3, '0', 32, 65536, 1000000, 60000, 900000, 512 * $4::int,
       '[{"template": "standard", "image": "standard-1", "ready": true}]'
     from generate_series(0, $1::int - 1) n`,
    [size.workers, fleet.url, fleet.certificate, LIVE_PER_WORKER],
  );
  await sql.query(
    `insert into components (component_id, kind, key_id, public_key)
     select 'worker_' || n, 'worker', $2, $3 from generate_series(0, $1::int - 1) n`,
    [size.workers, key.id, key.publicKey.x],
  );
  await sql.query(
    `insert into sandboxes (vm_id, tenant_id, worker_id, state, template, vcpu, cpu_fraction, memory_mib,
       disk_mib, rootfs, host_port, endpoint, idle_timeout_seconds, max_lifetime_seconds, created_at,
       placed_at, running_at, ended_at, end_reason)
     select 'vm_' || n, 'usr_' || n % $2::int, 'worker_' || n % $3::int,
       case when n < $4 then 'running' else 'destroyed' end, 'standard', 1, 1, 512, 2048, 'standard.qcow2',
       22000, '127.0.0.1', 3600, 86400, now() - interval '31 days', now() - interval '31 days',
       now() - interval '31 days',
       case when n < $4 then null else now() - random() * interval '30 days' end,
       case when n < $4 then null else 'deleted' end
     from generate_series(0, $1::int - 1) n`,
    [size.rows, TENANTS, size.workers, size.workers * LIVE_PER_WORKER],
  );
  await sql.query(
    `update tenants set active_sandboxes = live.count from
       (select tenant_id, count(*)::int from sandboxes where state <> 'destroyed' group by 1) live
     where live.tenant_id = tenants.tenant_id`,
  );
  await sql.query('vacuum analyze');
  // So that those which the load reaches late are not silent before.
  await sql.query(`update workers set heartbeat_at = now() + interval '10 minutes'`);
}
