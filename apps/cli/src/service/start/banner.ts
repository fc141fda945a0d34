import { COMMAND } from '../../output/command-name.ts';
import type { ServicePaths } from '../paths.ts';
import type { ServiceRecord } from '../service-record.ts';

interface BannerFacts {
  readonly record: ServiceRecord;
  readonly paths: ServicePaths;
  /** Whether emails are written to the outbox, because no SMTP server is configured. */
  readonly hasOutbox: boolean;
  /** Prefix that makes a command find this service, such as `SVC_DATA_DIR=/x `. */
  readonly prefix: string;
  readonly readyMs: number;
}

/** The text printed once the service is ready: its addresses and files, and the next commands to try. */
export function banner({ record, paths, hasOutbox, prefix, readyMs }: BannerFacts): string {
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['base_url', record.base_url],
    ['runtime_url', record.runtime_url],
    ['ca_file', record.ca_file],
    ['data_dir', paths.dataDir],
    [
      'outbox',
      hasOutbox
        ? `${paths.outbox}  (emails are written here: no SMTP server is configured)`
        : undefined,
    ],
    ['log', paths.log],
  ];
  const shown = facts.filter((fact) => fact[1] !== undefined);
  return [
    '',
    `svc ${record.version} is ready in ${(readyMs / 1000).toFixed(1)} s.`,
    ...shown.map(([name, value]) => `  ${name.padEnd(11)} ${value}`),
    '',
    'Next, in another terminal:',
    `  id=$(${prefix}${COMMAND} sandbox create --idle-timeout 15m)`,
    `  ${prefix}${COMMAND} sandbox exec $id -- python3 -c 'print("hello from", __import__("os").uname().nodename)'`,
    `  ${prefix}${COMMAND} sandbox rm $id`,
    '',
    'An agent session, with a scripted model that needs no key:',
    `  ${prefix}${COMMAND} demo`,
    '',
  ].join('\n');
}
