import { TEMPLATES } from '@svc/contract';
import { Command } from 'commander';
import { collectPair, parseDuration } from '../../arguments/parsers.ts';
import { addSizeOptions, requestedSize, type SizeOptions } from '../../arguments/sandbox-size.ts';
import { parseWorkspaceId, type WorkspaceLocation } from '../../arguments/workspace.ts';
import { withClient } from '../../connection/client.ts';
import { awaitCreation } from '../../output/creation.ts';

interface Options extends SizeOptions {
  readonly template: string;
  readonly idleTimeout?: number;
  readonly maxLifetime?: number;
  readonly workspace?: WorkspaceLocation['id'];
  readonly env?: Record<string, string>;
  readonly metadata?: Record<string, string>;
  readonly json?: boolean;
}

/** `svc sandbox create`: prints the id of the new sandbox once it is running. */
export function createCommand(): Command {
  const command = new Command('create')
    .description('create a sandbox and print its id')
    .option('-t, --template <name>', `image to start from: ${TEMPLATES.join(', ')}`, 'standard');
  return addSizeOptions(command)
    .option(
      '--idle-timeout <duration>',
      'end it after being idle for this long, as in 15m',
      parseDuration,
    )
    .option('--max-lifetime <duration>', 'end it after this long, as in 2h', parseDuration)
    .option('-w, --workspace <app/capset>', 'mount this workspace at /workspace', parseWorkspaceId)
    .option('-e, --env <NAME=value>', 'environment variable; repeatable', collectPair)
    .option('--metadata <name=value>', 'free-form metadata; repeatable', collectPair)
    .option('--json', 'print the whole response as JSON')
    .action((options: Options) =>
      withClient(async (client, signal) => {
        const creation = client.sandboxes.create(requestOf(options), { signal });
        const created = await awaitCreation('sandbox', creation);
        console.log(options.json ? JSON.stringify(created) : created.vm_id);
      }),
    );
}

function requestOf(options: Options) {
  const { template, idleTimeout, maxLifetime, workspace, env, metadata } = options;
  return {
    template,
    ...requestedSize(options),
    ...(idleTimeout === undefined ? {} : { idle_timeout_seconds: idleTimeout }),
    ...(maxLifetime === undefined ? {} : { max_lifetime_seconds: maxLifetime }),
    ...(workspace === undefined
      ? {}
      : {
          workspace_enabled: true,
          app_id: workspace.appId,
          capset_id: workspace.capsetId,
        }),
    ...(env === undefined ? {} : { env_vars: env }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}
