import { Command, InvalidArgumentError } from 'commander';

/** `svc backup`: copies the embedded database. */
export function backupCommand(): Command {
  return new Command('backup')
    .description('back the embedded database up to SVC_BACKUP_DIR, also while the service runs')
    .option('--keep <number>', 'how many backups to keep, with this one', parseCount, 7)
    .action(async ({ keep }: { readonly keep: number }) => {
      const { backUpDatabase } = await import('../service/backups.ts');
      const { name } = await backUpDatabase(keep);
      console.log(`made the backup ${name}; \`svc restore\` restores it, or any time after it`);
    });
}

/** `svc restore`: restores the embedded database. */
export function restoreCommand(): Command {
  return new Command('restore')
    .description('restore the embedded database from SVC_BACKUP_DIR; the service must be down')
    .option('--to <time>', 'as it was at this time, as in 2026-11-24T09:30:00Z', parseTime)
    .action(async ({ to }: { readonly to?: Date }) => {
      const { restoreDatabase } = await import('../service/backups.ts');
      const { backup, lastCommitAt, replaced } = await restoreDatabase(to);
      console.log(`restored the database with the backup ${backup.name}`);
      if (lastCommitAt !== undefined)
        console.log(`its last change is of ${lastCommitAt.toISOString()}`);
      if (replaced !== undefined) console.log(`the database before is in ${replaced}`);
      console.log(
        'sandboxes that it does not know come into quarantine: `svc worker quarantine ls`',
      );
    });
}

function parseCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1) return count;
  throw new InvalidArgumentError('Give a whole number of backups, 1 or more.');
}

function parseTime(text: string): Date {
  const time = new Date(text);
  // Without a zone, the time would be that of wherever the command runs.
  if (/(Z|[+-]\d{2}:?\d{2})$/.test(text) && !Number.isNaN(time.getTime())) return time;
  throw new InvalidArgumentError('Not a time with a zone, as in 2026-11-24T09:30:00Z.');
}
