import type { Config } from '@svc/config';
import type { ServiceRecord } from '../service/service-record.ts';

/** The result of a check, as `svc doctor --json` prints it. */
export interface Finding {
  readonly name: string;
  readonly verdict: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  /** The command or step that fixes the problem, unless the verdict is `ok`. */
  readonly mend?: string;
}

/** The input of a check, besides the machine. */
export interface CheckContext {
  readonly config: Config;
  /** The service that is running on the data directory. */
  readonly service: ServiceRecord | undefined;
}

/** A check with one or more findings. If it throws, the check itself counts as failed. */
export interface Check {
  readonly name: string;
  run(context: CheckContext): Promise<Finding | readonly Finding[]>;
}

/** The machine meets the requirement. */
export function ok(name: string, detail: string): Finding {
  return { name, verdict: 'ok', detail };
}

/** The service works, but not as well as it could. */
export function warn(name: string, detail: string, mend: string): Finding {
  return { name, verdict: 'warn', detail, mend };
}

/** The service cannot work. */
export function fail(name: string, detail: string, mend: string): Finding {
  return { name, verdict: 'fail', detail, mend };
}

/** The findings of a check. One that throws becomes a failed finding, with `mend` as its fix. */
export async function findingsOf(
  name: string,
  run: () => Promise<Finding | readonly Finding[]>,
  mend: string,
): Promise<readonly Finding[]> {
  try {
    return [await run()].flat();
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error);
    return [fail(name, `could not be checked: ${cause}`, mend)];
  }
}

const MARKS = { ok: '✓ ok  ', warn: '! warn', fail: '✗ fail' } as const;

/** Formats the findings, their fixes and a summary for the terminal. */
export function findingsText(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ name }) => name.length));
  const lines = findings.flatMap(({ name, verdict, detail, mend }) => [
    `${MARKS[verdict]}  ${name.padEnd(width)}  ${detail}`,
    ...(mend === undefined ? [] : [`${' '.repeat(width + 10)}fix: ${mend}`]),
  ]);
  return [...lines, '', summary(findings)].join('\n');
}

function summary(findings: readonly Finding[]): string {
  const count = (verdict: Finding['verdict']) =>
    findings.filter((finding) => finding.verdict === verdict).length;
  if (count('fail') > 0) return `${count('fail')} problem(s) prevent the service from working.`;
  if (count('warn') > 0) return 'The service can work; the warnings suggest improvements.';
  return 'All checks passed.';
}
