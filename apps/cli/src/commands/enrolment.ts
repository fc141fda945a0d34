import type { ComponentKind } from '@svc/contract';
import { Command } from 'commander';
import { integerBetween, parseDuration } from '../arguments/parsers.ts';
import { CliError } from '../output/errors.ts';
import { formatAge, formatTable } from '../output/format.ts';

const MAX_USES = 10_000;

interface TokenOptions {
  readonly id?: string;
  readonly uses: number;
  readonly validFor: number;
}

/** `svc worker token` and `svc runtime token`: print a token with which a component enrols. */
export function tokenCommand(kind: ComponentKind): Command {
  return new Command('token')
    .description(
      `print a token with which a ${kind} enrols at its first start; needs the secret of the control planes`,
    )
    .option('--id <id>', `only for the ${kind} with this id, which may replace its key`)
    .option(
      '--uses <n>',
      `how many may enrol with it, at most ${MAX_USES}`,
      integerBetween(1, MAX_USES, '--uses 10'),
      1,
    )
    .option('--valid-for <duration>', 'how long it is valid', parseDuration, 3_600)
    .action(async ({ id, uses, validFor }: TokenOptions) => {
      const { operatorToken } = await import('../service/fleet/operator-token.ts');
      console.log(await operatorToken({ kind, componentId: id, uses }, validFor));
    });
}

/** `svc worker revoke` and `svc runtime revoke` */
export function revokeCommand(kind: ComponentKind): Command {
  const effect = kind === 'worker' ? ', and give up its sandboxes' : '';
  return new Command('revoke')
    .description(`refuse every call of a ${kind} from now on${effect}`)
    .argument('<id>', `id of the ${kind}`)
    .action(async (id: string) => {
      const { withComponents } = await import('../service/fleet/operator-fleet.ts');
      if (!(await withComponents((components) => components.revoke(id, kind)))) {
        throw new CliError('not_enrolled', `the fleet has no ${kind} ${id} that is enrolled`, {
          next: `\`svc ${kind} ls\` lists them`,
        });
      }
      console.log(
        `${id} is revoked; it is back only with a new token: \`svc ${kind} token --id ${id}\``,
      );
    });
}

/** `svc runtime list` */
export function runtimeListCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description(
      'list the runtime hosts that have enrolled; needs the database of the control planes',
    )
    .option('--json', 'print them as JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { withComponents } = await import('../service/fleet/operator-fleet.ts');
      const hosts = await withComponents((components) => components.list('runtime'));
      if (json) console.log(JSON.stringify(hosts, null, 2));
      else {
        const rows = hosts.map((host) => [
          host.component_id,
          host.revoked_at === null ? 'enrolled' : 'revoked',
          `${formatAge(host.enrolled_at.toISOString())} ago`,
          host.key_id,
        ]);
        console.log(formatTable([['RUNTIME HOST', 'STATE', 'ENROLLED', 'KEY'], ...rows]));
      }
    });
}
