import { EmbeddedPostgres, openFleet } from '@svc/store';
import { type Check, ok, warn } from '../findings.ts';

/** Whether workers hold sandboxes that the database does not know, because it was restored. */
export const quarantineCheck: Check = {
  name: 'quarantine',
  run: async ({ config }) => {
    const url = config.databaseUrl?.reveal() ?? (await EmbeddedPostgres.runningUrl(config.dataDir));
    if (url === undefined) return [];
    await using operator = openFleet(url);
    if (!(await operator.quarantine.exists())) return [];
    const held = await operator.quarantine.count();
    if (held === 0) return ok('quarantine', 'the database knows all sandboxes');
    return warn(
      'quarantine',
      `${held} sandbox(es) that the restored database does not know`,
      'decide about each: `npx svc worker quarantine ls`',
    );
  },
};
