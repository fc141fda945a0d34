import type { ServicePlaces } from '../places.ts';
import type { ServiceRecord } from '../service-record.ts';

interface BannerFacts {
  readonly record: ServiceRecord;
  readonly places: ServicePlaces;
  /** No SMTP is configured, so mail goes to the outbox. */
  readonly mailIsKept: boolean;
  /** Prefix that makes a command find this service, such as `SVC_DATA_DIR=/x `. */
  readonly prefix: string;
  readonly readyMs: number;
}

/** What a person needs to know once the service is ready, and what to type next. */
export function banner({ record, places, mailIsKept, prefix, readyMs }: BannerFacts): string {
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['base_url', record.base_url],
    ['runtime_url', record.runtime_url],
    ['ca_file', record.ca_file],
    ['data_dir', places.dataDir],
    [
      'outbox',
      mailIsKept ? `${places.outbox}  (no SMTP configured: mail is kept here)` : undefined,
    ],
    ['log', places.log],
  ];
  const shown = facts.filter((fact) => fact[1] !== undefined);
  return [
    '',
    `svc ${record.version} is ready in ${(readyMs / 1000).toFixed(1)} s.`,
    ...shown.map(([name, value]) => `  ${name.padEnd(11)} ${value}`),
    '',
    'Type next, in another terminal:',
    `  id=$(${prefix}npx svc sandbox create --idle-timeout 15m)`,
    `  ${prefix}npx svc sandbox exec $id -- python3 -c 'print("hello from", __import__("os").uname().nodename)'`,
    `  ${prefix}npx svc sandbox rm $id`,
    '',
    'An agent session, with a scripted model that needs no key:',
    `  ${prefix}npx svc demo`,
    '',
  ].join('\n');
}
