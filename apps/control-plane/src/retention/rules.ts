import type { Config } from '@svc/config';
import { LIMITS } from '@svc/contract';
import type { Store } from '@svc/store';
import { SIGNING_KEY_SECONDS } from '../auth/signing-keys.ts';

const HOUR = 3_600;
const DAY = 24 * HOUR;
const MIB = 1024 * 1024;
/** Rows in one statement. */
const ROWS = 500;
/** For rows that have many large ones below them. */
const LARGE_ROWS = 20;

/** How long one kind of data is kept. */
export interface RetentionRule {
  /** Name in the log and in the metric. */
  readonly kind: string;
  /** From the event that the documentation names. Undefined: for ever. */
  readonly seconds: number | undefined;
  /** The most that one call of `remove` may remove. */
  readonly batch: number;
  /** Removes up to `limit` that are older, by the database's clock, and returns their number. */
  remove(olderThanSeconds: number, limit: number, signal: AbortSignal): Promise<number>;
}

/** The settings that rules depend on. */
export type RetentionSettings = Pick<
  Config,
  'sessionRetentionDays' | 'auditRetentionDays' | 'sandboxRetentionDays' | 'imageStoreBudgetMib'
>;

/**
 * Everything in the ledger that is removed after a time. Usage and money are kept for ever; only the records of a sandbox that has
 * ended are replaced by their sums. Sandboxes come before workers, whose last record of a sandbox has to be gone first.
 */
export function retentionRules(store: Store, settings: RetentionSettings): RetentionRule[] {
  return [
    rule('one_time_codes', 0, (...batch) => store.otp.removeExpired(...batch)),
    rule('one_time_code_counters', HOUR, (...batch) => store.otp.removeCounters(...batch)),
    rule('request_budgets', 0, (...batch) => store.requestBudgets.removeExpired(...batch)),
    rule('idempotency_keys', LIMITS.idempotencySeconds, (...batch) =>
      store.idempotency.removeExpired(...batch),
    ),
    rule('control_planes', HOUR, (...batch) => store.controlPlanes.removeSilent(...batch)),
    rule('runtime_hosts', HOUR, (...batch) => store.runtimeHosts.removeSilent(...batch)),
    // Far longer than clocks differ: without its row, a token that a clock still takes for valid would count as unused.
    rule('enrolment_tokens', DAY, (...batch) => store.components.removeExpiredTokens(...batch)),
    rule('config_updates', DAY, (...batch) => store.configUpdates.removeEnded(...batch)),
    rule('signing_keys', SIGNING_KEY_SECONDS, (...batch) =>
      store.signingKeys.removeOlder(...batch),
    ),
    {
      kind: 'usage_records',
      seconds: DAY,
      batch: ROWS,
      remove: (...batch) => store.usage.foldRecords(...batch),
    },
    // Longer than any save of files with the commit of its turn.
    rule('session_chunks', HOUR, (...batch) => store.sessionChunks.removeUnused(...batch)),
    // Longer than any flush of a workspace, from the upload of a chunk to the change that names it.
    rule('workspace_chunks', HOUR, (...batch) => store.workspaceChunks.removeUnused(...batch)),
    large('workspace_flushes', HOUR, (...batch) =>
      store.workspaces.removeAbandonedFlushes(...batch),
    ),
    // A late call may still name them.
    rule('finished_workspace_flushes', DAY, (...batch) =>
      store.workspaces.removeFinishedFlushes(...batch),
    ),
    large('empty_workspaces', 7 * DAY, (...batch) => store.workspaces.removeEmpty(...batch)),
    large('session_uploads', HOUR, (...batch) => store.sessionFiles.removeOrphans(...batch)),
    // Stripe reports a payment again for at most three days.
    rule('unpaid_checkouts', 30 * DAY, (...batch) => store.billing.removeUnpaidCheckouts(...batch)),
    // Far longer than the signature of an event is accepted.
    rule('provider_events', 90 * DAY, (...batch) => store.billing.removeOldEvents(...batch)),
    rule('agent_logs', LIMITS.destroyedRecordSeconds, (...batch) =>
      store.agentLogs.removeExpired(...batch),
    ),
    large('requested_erasures', 0, (_, limit) => store.sessions.eraseRequested(limit)),
    large('sessions', daysOf(settings.sessionRetentionDays), (...batch) =>
      store.sessions.eraseExpired(...batch),
    ),
    rule('sandboxes', daysOf(settings.sandboxRetentionDays), (...batch) =>
      store.sandboxes.removeEnded(...batch),
    ),
    rule('workers', daysOf(settings.sandboxRetentionDays), (...batch) =>
      store.workers.removeSilent(...batch),
    ),
    rule('components', daysOf(settings.sandboxRetentionDays), (...batch) =>
      store.components.removeUnused(...batch),
    ),
    rule('quarantined_sandboxes', DAY, (...batch) => store.quarantine.removeUnseen(...batch)),
    // Longer than a worker with a VM that is left over can be away.
    rule('forgotten_sandboxes', 7 * DAY, (...batch) => store.quarantine.removeForgotten(...batch)),
    // One at a time, since each changes which others have to go.
    single('images', DAY, (olderThanSeconds) =>
      store.images.removeUnneeded(settings.imageStoreBudgetMib * MIB, olderThanSeconds),
    ),
    // Longer than any push, and than the time after which somebody goes on with one that broke off.
    rule('image_blobs', DAY, (...batch) => store.images.removeUnusedBlobs(...batch)),
    // Audit records name them.
    rule('revoked_api_keys', daysOf(settings.auditRetentionDays), (...batch) =>
      store.apiKeys.removeRevoked(...batch),
    ),
    rule('audit_records', daysOf(settings.auditRetentionDays), (...batch) =>
      store.audit.removeOlder(...batch),
    ),
  ];
}

type Remove = (olderThanSeconds: number, limit: number) => Promise<number>;

function rule(kind: string, seconds: number | undefined, remove: Remove): RetentionRule {
  return { kind, seconds, batch: ROWS, remove };
}

function single(kind: string, seconds: number, remove: Remove): RetentionRule {
  return { kind, seconds, batch: 1, remove };
}

function large(kind: string, seconds: number | undefined, remove: Remove): RetentionRule {
  return { kind, seconds, batch: LARGE_ROWS, remove };
}

/** Days in seconds; 0 days mean for ever. */
function daysOf(days: number): number | undefined {
  return days === 0 ? undefined : days * DAY;
}
