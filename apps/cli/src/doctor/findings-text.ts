import type { Finding } from './finding.ts';

const MARKS = { ok: '✓ ok  ', warn: '! warn', fail: '✗ fail' } as const;

/** The findings as one screen of text. */
export function findingsText(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ name }) => name.length));
  const lines = findings.flatMap(({ name, verdict, detail, mend }) => [
    `${MARKS[verdict]}  ${name.padEnd(width)}  ${detail}`,
    ...(mend === undefined ? [] : [`${' '.repeat(width + 10)}mend: ${mend}`]),
  ]);
  return [...lines, '', summary(findings)].join('\n');
}

function summary(findings: readonly Finding[]): string {
  const count = (verdict: Finding['verdict']) =>
    findings.filter((finding) => finding.verdict === verdict).length;
  if (count('fail') > 0) return `${count('fail')} problem(s) keep the service from working.`;
  if (count('warn') > 0) return 'The service can work; the warnings say what would make it better.';
  return 'Everything is as it should be.';
}
