import { Command } from 'commander';
import { ArgumentError } from '../../arguments/parsers.ts';
import { CliError } from '../../output/errors.ts';

interface AdjustOptions {
  readonly reason: string;
  readonly reference: string;
}

/** `svc billing adjust`, for the operator, on a machine that reaches the database. */
export function adjustCommand(): Command {
  return new Command('adjust')
    .description('add a correction to the credit of an account; for the operator')
    .argument('<account>', 'id of the account')
    .argument('<cents>', 'US cents, negative to take credit away', parseCents)
    .requiredOption('--reason <text>', 'what the account sees in its transactions')
    .requiredOption('--reference <text>', 'what it is for, such as the id of a refund; counts once')
    .addHelpText('after', '\nThe service may be running.')
    .action(async (tenantId: string, amount: number, { reason, reference }: AdjustOptions) => {
      const { adjustStoredBilling } = await import('../../service/adjust-billing.ts');
      const adjustment = { tenantId, amount, description: reason, reference };
      const outcome = await adjustStoredBilling(adjustment);
      if (outcome === 'unknown_account') {
        throw new CliError('account_not_found', `there is no account ${tenantId}`, {
          next: 'ask the account for its id, which `svc login` prints',
        });
      }
      const isAdded = outcome === 'added';
      console.log(isAdded ? 'added' : 'unchanged: there is an adjustment with this reference');
    });
}

function parseCents(text: string): number {
  const cents = /^-?\d{1,9}$/.test(text) ? Number(text) : 0;
  if (cents !== 0) return cents;
  throw new ArgumentError(`"${text}" is not an amount`, 'use whole US cents', '-2000');
}
