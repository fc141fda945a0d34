import * as ledger from './0001-ledger.ts';
import * as accounts from './0002-accounts.ts';
import * as sessions from './0003-sessions.ts';
import * as placement from './0004-placement.ts';
import * as sessionSizes from './0005-session-sizes.ts';
import * as agentLogs from './0006-agent-logs.ts';
import * as frameNumbers from './0007-frame-numbers.ts';
import * as configUpdates from './0008-config-updates.ts';
import * as idempotencyHolders from './0009-idempotency-holders.ts';
import * as usage from './0010-usage.ts';
import * as billing from './0011-billing.ts';
import * as sessionChunks from './0012-session-chunks.ts';
import * as retention from './0013-retention.ts';
import * as workspaces from './0014-workspaces.ts';
import * as quotas from './0015-quotas.ts';
import * as sessionTranscripts from './0016-session-transcripts.ts';
import * as mountedWorkspaces from './0018-mounted-workspaces.ts';
import * as wrongCodes from './0020-wrong-codes.ts';
import * as shownLogs from './0021-shown-logs.ts';
import * as objectDeletions from './0022-object-deletions.ts';
import * as sandboxLists from './0025-sandbox-lists.ts';
import * as workerOrders from './0032-worker-orders.ts';
import * as images from './0047-images.ts';
import * as quarantine from './0048-quarantine.ts';
import * as controlPlanes from './0052-control-planes.ts';
import * as placementKeys from './0053-placement-keys.ts';
import * as workerInstances from './0054-worker-instances.ts';
import * as runtimeHosts from './0055-runtime-hosts.ts';
import * as components from './0056-components.ts';
import * as revokedKeys from './0057-revoked-keys.ts';
import * as workspaceReferences from './0058-workspace-references.ts';
import * as sandboxesOfWorkers from './0059-sandboxes-of-workers.ts';
import * as paymentMethodTimes from './0060-payment-method-times.ts';
import * as foldedUsage from './0061-folded-usage.ts';
import * as uploadBytes from './0063-upload-bytes.ts';
import * as archiveOrder from './0064-archive-order.ts';
import * as lostChunks from './0065-lost-chunks.ts';
import type { SchemaMigration } from './schema-migration.ts';

/** All migrations by name, in the order in which they run. A released migration never changes its name or its result. */
export const MIGRATIONS: Readonly<Record<string, SchemaMigration>> = {
  '0001-ledger': ledger,
  '0002-accounts': accounts,
  '0003-sessions': sessions,
  '0004-placement': placement,
  '0005-session-sizes': sessionSizes,
  '0006-agent-logs': agentLogs,
  '0007-frame-numbers': frameNumbers,
  '0008-config-updates': configUpdates,
  '0009-idempotency-holders': idempotencyHolders,
  '0010-usage': usage,
  '0011-billing': billing,
  '0012-session-chunks': sessionChunks,
  '0013-retention': retention,
  '0014-workspaces': workspaces,
  '0015-quotas': quotas,
  '0016-session-transcripts': sessionTranscripts,
  '0018-mounted-workspaces': mountedWorkspaces,
  '0020-wrong-codes': wrongCodes,
  '0021-shown-logs': shownLogs,
  '0022-object-deletions': objectDeletions,
  '0025-sandbox-lists': sandboxLists,
  '0032-worker-orders': workerOrders,
  '0047-images': images,
  '0048-quarantine': quarantine,
  '0052-control-planes': controlPlanes,
  '0053-placement-keys': placementKeys,
  '0054-worker-instances': workerInstances,
  '0055-runtime-hosts': runtimeHosts,
  '0056-components': components,
  '0057-revoked-keys': revokedKeys,
  '0058-workspace-references': workspaceReferences,
  '0059-sandboxes-of-workers': sandboxesOfWorkers,
  '0060-payment-method-times': paymentMethodTimes,
  '0061-folded-usage': foldedUsage,
  '0063-upload-bytes': uploadBytes,
  '0064-archive-order': archiveOrder,
  '0065-lost-chunks': lostChunks,
};
