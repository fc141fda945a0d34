import type { BillingCheck } from '@svc/store';
import { Command } from 'commander';
import { CliError } from '../../output/errors.ts';
import { formatTable } from '../../output/format.ts';

const HEADING = ['SUBJECT', 'FOUND', 'EXPECTED'];

/** `svc billing verify`, for the operator, on a machine that reaches the database. */
export function verifyCommand(): Command {
  return new Command('verify')
    .description('recompute all money in the database from its sources; for the operator')
    .option('--json', 'print the checks as JSON')
    .addHelpText('after', '\nThe service may be running. The exit code is 1 if anything differs.')
    .action(async ({ json }: { json?: boolean }) => {
      const { verifyStoredBilling } = await import('../../service/verify-billing.ts');
      const checks = await verifyStoredBilling();
      console.log(json ? JSON.stringify(checks) : checks.map(describe).join('\n'));
      const failed = checks.filter(({ differences }) => differences.length > 0).length;
      if (failed > 0) {
        throw new CliError('billing_differs', `${failed} of ${checks.length} checks failed`, {
          next: 'keep the database as it is, and compare the entries above with a backup',
        });
      }
    });
}

function describe({ claim, differences }: BillingCheck): string {
  if (differences.length === 0) return `ok    ${claim}`;
  const rows = differences.map(({ subject, found, expected }) => [subject, found, expected]);
  return `FAIL  ${claim}\n${formatTable([HEADING, ...rows])}`;
}
