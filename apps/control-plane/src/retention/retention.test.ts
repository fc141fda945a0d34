import { readFileSync } from 'node:fs';
import { createLogger, Registry } from '@svc/service-kit';
import { openStore, type Store } from '@svc/store';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';
import { createRetentionMetrics, Retention } from './retention.ts';
import { type RetentionRule, retentionRules } from './rules.ts';

const DEFAULTS = {
  sessionRetentionDays: 30,
  sandboxRetentionDays: 90,
  auditRetentionDays: 400,
  // So that every image is too much.
  imageStoreBudgetMib: 0,
};
const never = new AbortController().signal;

let harness: Harness;
let store: Store;
let tenant: string;

const open = () =>
  openStore({
    url: harness.postgres.url,
    placement: { unreachableMs: 30_000, sandboxesPerTenant: 1 },
  });
const sql = (text: string) => harness.sql.query(text);
const count = async (table: string) =>
  Number((await sql(`select count(*) as n from ${table}`)).rows[0]?.n);

beforeAll(async () => {
  harness = await Harness.start();
  store = await open();
  tenant = (await harness.signUp()).tenantId;
});
afterAll(async () => {
  await store?.close();
  await harness?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await harness.reset();
  await sql(`truncate otp_codes, otp_requests, request_budgets, idempotency_keys, audit_records,
    images, image_blobs, image_blob_uses, checkouts, provider_events`);
  await sql(`insert into workers (worker_id, url, certificate, version, vcpu, memory_mib, disk_mib, templates)
    values ('w', '', '', '', 1, 1, 1, '[]')`);
});

/** A retention with a log and metrics of its own. */
function retention(rules: readonly RetentionRule[] = retentionRules(store, DEFAULTS)) {
  const registry = new Registry();
  const lines: string[] = [];
  const logger = createLogger({
    level: 'info',
    pretty: false,
    destination: { write: (line) => void lines.push(line) },
  });
  const removed = async (kind: string, name = 'svc_retention_removed_total') => {
    const metric = await registry.getSingleMetricAsString(name);
    return Number(new RegExp(`kind="${kind}"} (\\d+)`).exec(metric)?.[1]);
  };
  const made = new Retention({ rules, metrics: createRetentionMetrics(registry), logger });
  return { pass: () => made.pass(never), removed, lines };
}

/** Plants a sandbox that ended this long ago. */
const endedSandbox = (vmId: string, ago: string, session = 'null') =>
  sql(`insert into sandboxes (vm_id, tenant_id, worker_id, state, template, memory_mib, agent, session_id,
      idle_timeout_seconds, max_lifetime_seconds, ended_at, end_reason)
    values ('${vmId}', '${tenant}', 'w', 'destroyed', 'standard', 1, 'deictic', ${session},
      1, 1, now() - interval '${ago}', 'deleted')`);

/** Plants a session that ended this long ago, with everything that a session keeps. Returns its id. */
async function endedSession(ago: string, status = 'completed'): Promise<string> {
  const ended = status === 'active' ? 'null' : `now() - interval '${ago}'`;
  const { rows } =
    await sql(`insert into sessions (session_id, tenant_id, status, vm_id, agent, app_id, set_id, app,
      template, vendor, model, secrets, user_id, last_seq, conversation, files_id, expires_at, ended_at)
    values (gen_random_uuid(), '${tenant}', '${status}', 'vm', 'deictic', 'a', 's', '{"name":"x"}', 'standard',
      'openai', 'm', '{}', 'u', 1, 'said', 'f', now(), ${ended}) returning session_id`);
  const id = String(rows[0]?.session_id);
  await sql(`insert into session_frames values ('${id}', 1, 1, '{}')`);
  await sql(`insert into session_chunks values
    ('${id}', sha256('used'), 'sessions/${id}/' || gen_random_uuid(), 1, now(), null)`);
  await sql(`insert into session_manifests values ('${id}', 'f', 1, sha256('used'))`);
  await sql(`with upload as (insert into session_uploads (upload_id, session_id, files_id, size_bytes, committed)
      values (gen_random_uuid(), '${id}', 'f', 1, true) returning upload_id)
    insert into session_pieces select upload_id, 0, 'x' from upload`);
  return id;
}

async function emptyWorkspace(): Promise<string> {
  const { rows } = await sql(`insert into workspaces (tenant_id, app_id, capset_id)
    values ('${tenant}', gen_random_uuid(), 'c') returning workspace_id`);
  return String(rows[0]?.workspace_id);
}

/** Plants one row of each kind, `young` or not: within its retention, or past it. Returns a query that counts them. */
const PLANTED: Record<string, (young: boolean) => Promise<string>> = {
  one_time_codes: async (young) => {
    await sql(`insert into otp_codes (email, code_hash, expires_at)
      values ('${young}@x', '', now() + interval '${young ? 60 : -1} second')`);
    return 'otp_codes';
  },
  one_time_code_counters: async (young) => {
    await sql(`insert into otp_requests
      values ('ip', '${young}', array[now() - interval '${young ? 59 : 61} minutes'])`);
    return 'otp_requests';
  },
  request_budgets: async (young) => {
    await sql(`insert into request_budgets
      values ('${young}', '${tenant}', 1, now() + interval '${young ? 1 : -1} second')`);
    return 'request_budgets';
  },
  idempotency_keys: async (young) => {
    await sql(`insert into idempotency_keys (tenant_id, operation, key, body_hash, subject, locked_until, created_at)
      values ('${tenant}', 'o', '${young}', '', '', now(), now() - interval '${young ? 23 : 25} hours')`);
    return 'idempotency_keys';
  },
  control_planes: async (young) => {
    await sql(`insert into control_planes
      values (gen_random_uuid(), '{planted}', now() - interval '${young ? 59 : 61} minutes')`);
    return `control_planes where knows = '{planted}'`;
  },
  runtime_hosts: async (young) => {
    await sql(`insert into runtime_hosts
      values (gen_random_uuid(), 'r', now() - interval '${young ? 59 : 61} minutes')`);
    return 'runtime_hosts';
  },
  enrolment_tokens: async (young) => {
    await sql(`insert into enrolment_tokens
      values (gen_random_uuid(), 1, now() - interval '${young ? 23 : 25} hours')`);
    return 'enrolment_tokens';
  },
  config_updates: async (young) => {
    await endedSandbox(`vm_${young}`, '1 day');
    await sql(`insert into config_updates (vm_id, bundle, version, keys, expires_at, outcome, ended_at)
      values ('vm_${young}', 'b', 1, '{}', now(), 'delivered', now() - interval '${young ? 23 : 25} hours')`);
    return 'config_updates';
  },
  signing_keys: async (young) => {
    await sql(`insert into signing_keys
      values ('kid-${young}', '', now() - interval '${young ? '1 day' : '60 days'}') on conflict do nothing`);
    return `signing_keys where kid like 'kid-%'`;
  },
  usage_records: async (young) => {
    const id = `vm_${young}`;
    await endedSandbox(id, young ? '23 hours' : '25 hours');
    await sql(
      `insert into usage_meters (vm_id, generation, tenant_id) values ('${id}', 1, '${tenant}')`,
    );
    return 'usage_meters where not is_folded';
  },
  session_chunks: async (young) => {
    const id = await endedSession('1 day');
    await sql(`insert into session_chunks (session_id, chunk_id, object_key, stored_bytes, unused_since)
      values ('${id}', sha256('unused'), gen_random_uuid(), 1, now() - interval '${young ? 59 : 61} minutes')`);
    return 'session_chunks where unused_since is not null';
  },
  workspace_chunks: async (young) => {
    const id = await emptyWorkspace();
    await sql(`insert into workspace_chunks (workspace_id, chunk_id, object_key, stored_bytes, unused_since)
      values ('${id}', sha256('unused'), gen_random_uuid(), 1, now() - interval '${young ? 59 : 61} minutes')`);
    return 'workspace_chunks where unused_since is not null';
  },
  workspace_flushes: async (young) => {
    const id = await emptyWorkspace();
    await sql(`insert into workspace_flushes (flush_id, workspace_id, vm_id, state, touched_at) values
      (gen_random_uuid(), '${id}', 'vm', 'open', now() - interval '${young ? 59 : 61} minutes')`);
    return 'workspace_flushes';
  },
  finished_workspace_flushes: async (young) => {
    const id = await emptyWorkspace();
    await sql(`insert into workspace_flushes (flush_id, workspace_id, vm_id, state, touched_at) values
      (gen_random_uuid(), '${id}', 'vm_finished', '${young ? 'closed' : 'committed'}', now() - interval '${young ? 23 : 25} hours')`);
    return `workspace_flushes where vm_id = 'vm_finished'`;
  },
  empty_workspaces: async (young) => {
    const id = await emptyWorkspace();
    await sql(`update workspaces set app_id = 'empty ${young}',
      used_at = now() - interval '${young ? 6 : 8} days' where workspace_id = '${id}'`);
    return `workspaces where app_id like 'empty%'`;
  },
  session_uploads: async (young) => {
    const id = await endedSession('1 day');
    await sql(`insert into session_uploads (upload_id, session_id, files_id, created_at)
      values (gen_random_uuid(), '${id}', 'g', now() - interval '${young ? 59 : 61} minutes')`);
    return 'session_uploads where not committed';
  },
  unpaid_checkouts: async (young) => {
    await sql(`insert into checkouts (checkout_id, tenant_id, provider, amount_cents, expires_at)
      values ('${young}', '${tenant}', 'stripe', 500, now() - interval '${young ? 29 : 31} days')`);
    return 'checkouts';
  },
  provider_events: async (young) => {
    await sql(`insert into provider_events (event_id, type, received_at)
      values ('${young}', 't', now() - interval '${young ? 89 : 91} days')`);
    return 'provider_events';
  },
  agent_logs: async (young) => {
    await endedSandbox(`vm_${young}`, young ? '14 minutes' : '16 minutes');
    await sql(`insert into agent_logs values ('vm_${young}', 1, 0, true)`);
    return 'agent_logs';
  },
  requested_erasures: async (young) => {
    const id = await endedSession('1 second', young ? 'active' : 'completed');
    // As if it were being started: the sweeper of the control plane ends any other active one.
    await sql(`update sessions set erase_requested_at = now(), busy_until = now() + interval '1 hour'
      where session_id = '${id}'`);
    return 'sessions where conversation is not null';
  },
  sessions: async (young) => {
    await endedSession(young ? '29 days' : '31 days');
    return 'sessions where conversation is not null';
  },
  sandboxes: async (young) => {
    await endedSandbox(`vm_${young}`, young ? '89 days' : '91 days');
    return 'sandboxes';
  },
  workers: async (young) => {
    await sql(`insert into workers (worker_id, url, certificate, version, vcpu, memory_mib, disk_mib, templates, heartbeat_at)
      values ('${young}', '', '', '', 1, 1, 1, '[]', now() - interval '${young ? 89 : 91} days')`);
    return `workers where worker_id <> 'w'`;
  },
  components: async (young) => {
    await sql(`insert into components (component_id, kind, key_id, public_key, used_at)
      values ('${young}', 'runtime', 'k', 'x', now() - interval '${young ? 89 : 91} days')`);
    return 'components';
  },
  quarantined_sandboxes: async (young) => {
    await sql(`insert into quarantined_sandboxes (vm_id, worker_id, generation, tenant_id, report, seen_at)
      values ('${young}', 'w', 1, '${tenant}', '{}', now() - interval '${young ? 23 : 25} hours')`);
    return 'quarantined_sandboxes';
  },
  forgotten_sandboxes: async (young) => {
    await sql(`insert into forgotten_sandboxes
      values ('vm_${young}', 1, now() - interval '${young ? 6 : 8} days')`);
    return 'forgotten_sandboxes';
  },
  images: async (young) => {
    const key = `'standard', '${young ? 'a' : 'b'}', 'x64'`;
    await sql(`insert into image_blobs values (sha256('${young}'), 'images/${young}', 1, now())`);
    await sql(`insert into images values
      (${key}, sha256('${young}'), '', 'k', '0.1.0', now() - interval '${young ? 23 : 25} hours')`);
    await sql(`insert into image_blob_uses values (${key}, sha256('${young}'))`);
    return 'images';
  },
  image_blobs: async (young) => {
    await sql(`insert into image_blobs values
      (sha256('${young}'), 'images/${young}', 1, now(), now() - interval '${young ? 23 : 25} hours')`);
    return 'image_blobs';
  },
  revoked_api_keys: async (young) => {
    await sql(`insert into api_keys (key_id, tenant_id, secret_hash, prefix, revoked_at) values
      ('${young}', '${tenant}', sha256('${young}'), '', now() - interval '${young ? 399 : 401} days')`);
    return 'api_keys where revoked_at is not null';
  },
  audit_records: async (young) => {
    await sql(`insert into audit_records (event, tenant_id, details, created_at)
      values ('login_failed', '${tenant}', '{}', now() - interval '${young ? 399 : 401} days')`);
    return 'audit_records';
  },
};

describe('a pass', () => {
  test('has a test and a line of documentation for every rule', () => {
    const kinds = retentionRules(store, DEFAULTS).map(({ kind }) => kind);
    expect(Object.keys(PLANTED)).toEqual(kinds);
    const page = readFileSync(new URL('../../../../docs/operations.md', import.meta.url), 'utf8');
    const documented = [...page.matchAll(/^\| `([a-z_]+)` \|.*\|.*\|.*\|$/gm)].map(
      ([, kind]) => kind,
    );
    for (const kind of kinds) expect(documented).toContain(kind);
  });

  test.each(Object.keys(PLANTED))(
    'removes %s when their time is over, and not before',
    async (kind) => {
      const plant = PLANTED[kind];
      if (plant === undefined) throw new Error(kind);
      const { pass, removed, lines } = retention();
      await plant(true);
      const planted = await plant(false);
      expect(await count(planted)).toBe(2);
      expect(await pass()).toBe(true);
      expect(await count(planted)).toBe(1);
      expect(await removed(kind)).toBe(1);
      expect(lines.map((line) => JSON.parse(line))).toContainEqual(
        expect.objectContaining({ kind, removed: 1, msg: 'removed expired data' }),
      );
      expect(await pass()).toBe(true);
      expect(await count(planted)).toBe(1);
    },
  );

  test('erases what a session keeps, but not its record, and no active session', async () => {
    const id = await endedSession('31 days');
    await endedSandbox('vm_1', '1 minute', `'${id}'`);
    await sql(`insert into agent_logs values ('vm_1', 1, 0, true)`);
    const active = await endedSession('', 'active');
    await sql(`update sessions set created_at = now() - interval '1 year', busy_until = now() + interval '1 hour'
      where session_id = '${active}'`);
    await retention().pass();
    const { rows } = await sql(`select session_id, conversation, files_id, app, last_seq,
      erased_at is not null as erased from sessions order by status`);
    expect(rows).toEqual([
      expect.objectContaining({ session_id: active, files_id: 'f', erased: false }),
      {
        session_id: id,
        conversation: null,
        files_id: null,
        app: null,
        last_seq: '1',
        erased: true,
      },
    ]);
    for (const table of [
      'session_frames',
      'session_uploads',
      'session_pieces',
      'session_chunks',
      'session_manifests',
    ]) {
      expect(await count(table), table).toBe(1);
    }
    expect(await count('agent_logs')).toBe(0);
  });

  test('keeps for ever what is set to 0 days', async () => {
    const kinds = ['sessions', 'sandboxes', 'workers', 'audit_records'];
    await endedSession('9999 days');
    await endedSandbox('vm_1', '9999 days');
    await PLANTED.audit_records?.(false);
    const forever = {
      ...DEFAULTS,
      sessionRetentionDays: 0,
      sandboxRetentionDays: 0,
      auditRetentionDays: 0,
    };
    const { pass, removed } = retention(retentionRules(store, forever));
    await pass();
    for (const kind of kinds) expect(await removed(kind)).toBe(0);
    expect(await count('sessions where conversation is not null')).toBe(1);
  });

  test('keeps what was paid for ever', async () => {
    await PLANTED.unpaid_checkouts?.(false);
    await sql('update checkouts set paid_at = expires_at');
    await retention().pass();
    expect(await count('checkouts')).toBe(1);
  });

  test('is bounded, and says when there is more', async () => {
    let left = 0;
    const sizes: number[] = [];
    const remove = async (_: number, limit: number) => {
      const size = Math.min(left, limit);
      left -= size;
      sizes.push(size);
      return size;
    };
    const { pass } = retention([{ kind: 'k', seconds: 1, batch: 10, remove }]);
    left = 1_005;
    expect(await pass()).toBe(false);
    expect(sizes).toEqual(Array(20).fill(10));
    for (let passes = 0; passes < 4; passes += 1) await pass();
    expect(await pass()).toBe(true);
    expect(left).toBe(0);
  });

  test('removes the finished flushes of a busy fleet', async () => {
    const id = await emptyWorkspace();
    await sql(`insert into workspace_flushes (flush_id, workspace_id, vm_id, state, touched_at)
      select gen_random_uuid(), '${id}', 'vm_busy', 'committed', now() - interval '2 days' from generate_series(1, 2000)`);
    await retention().pass();
    expect(await count(`workspace_flushes where vm_id = 'vm_busy'`)).toBe(0);
  });

  test('removes empty workspaces behind others that hold chunks', async () => {
    await sql(`with made as (insert into workspaces (tenant_id, app_id, capset_id, used_at)
        select '${tenant}', gen_random_uuid(), 'c', now() - interval '9 days' from generate_series(1, 60)
        returning workspace_id)
      insert into workspace_chunks (workspace_id, chunk_id, object_key, stored_bytes)
      select workspace_id, sha256('held'), gen_random_uuid(), 1 from made`);
    await PLANTED.empty_workspaces?.(false);
    await retention().pass();
    expect(await count(`workspaces where app_id = 'empty false'`)).toBe(0);
  });

  test('removes no more in a batch than it is told', async () => {
    for (let index = 0; index < 12; index += 1) {
      await PLANTED.audit_records?.(false);
      await endedSession('31 days');
    }
    expect(await store.audit.removeOlder(0, 5)).toBe(5);
    expect(await count('audit_records')).toBe(7);
    expect(await store.sessions.eraseExpired(0, 5)).toBe(5);
    expect(await count('session_frames')).toBe(7);
  });

  test('goes on after a rule that fails, which it reports', async () => {
    await PLANTED.audit_records?.(false);
    const broken: RetentionRule = {
      kind: 'broken',
      seconds: 1,
      batch: 1,
      remove: async () => {
        throw new Error('no');
      },
    };
    const { pass, removed, lines } = retention([broken, ...retentionRules(store, DEFAULTS)]);
    expect(await pass()).toBe(true);
    expect(await count('audit_records')).toBe(0);
    expect(await removed('broken', 'svc_retention_failures_total')).toBe(1);
    expect(lines.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ kind: 'broken', level: 40 }),
    );
  });

  test('of two control planes at once removes everything exactly once', async () => {
    await sql(`insert into audit_records (event, tenant_id, details, created_at)
      select 'login_failed', '${tenant}', '{}', now() - interval '401 days' from generate_series(1, 3000)`);
    for (let index = 0; index < 50; index += 1) await endedSession('31 days');
    await using other = { store: await open(), [Symbol.asyncDispose]: () => other.store.close() };
    const planes = [retention(), retention(retentionRules(other.store, DEFAULTS))];
    await Promise.all(planes.map(({ pass }) => pass()));
    const total = async (kind: string) =>
      (await Promise.all(planes.map(({ removed }) => removed(kind)))).reduce((a, b) => a + b);
    expect(await total('audit_records')).toBe(3000);
    expect(await total('sessions')).toBe(50);
    expect(await count('audit_records')).toBe(0);
    expect(await count('session_frames')).toBe(0);
    for (const { removed } of planes) {
      expect(await removed('sessions', 'svc_retention_failures_total')).toBe(0);
    }
  });
});

test('usage and money stay when the records that they came from go', async () => {
  await endedSandbox('vm_old', '9999 days');
  await sql(`insert into usage_records (vm_id, generation, seq, tenant_id, used_at, created_at)
    values ('vm_old', 1, 1, '${tenant}', now() - interval '9999 days', now() - interval '9999 days')`);
  await sql(`insert into usage_days (tenant_id, day) values ('${tenant}', '2000-01-01')`);
  await sql(`insert into ledger_entries (tenant_id, amount_cents, kind, reference, description, created_at)
    values ('${tenant}', -1, 'usage', 'old', '', now() - interval '9999 days')`);
  await retention().pass();
  expect(await count('sandboxes')).toBe(0);
  for (const table of ['usage_records', 'usage_days', `ledger_entries where reference = 'old'`]) {
    expect(await count(table), table).toBe(1);
  }
});
