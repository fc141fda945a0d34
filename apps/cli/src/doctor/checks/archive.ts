import { EmbeddedPostgres, openFleet } from '@svc/store';
import { type Check, ok, warn } from '../findings.ts';

/** Whether the embedded database can copy its log to the directory of the backups. */
export const archiveCheck: Check = {
  name: 'backups',
  run: async ({ config }) => {
    if (config.backupDir === undefined) return [];
    const url = await EmbeddedPostgres.runningUrl(config.dataDir);
    if (url === undefined) return [];
    await using operator = openFleet(url);
    if (!(await operator.archive.isFailing())) return ok('backups', 'the log is archived');
    return warn(
      'backups',
      'the database cannot copy its log to SVC_BACKUP_DIR: what is newer cannot be restored',
      'make room there, and let the account of PostgreSQL write to it',
    );
  },
};
