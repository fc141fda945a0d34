import { Command } from 'commander';
import { adjustCommand } from './adjust.ts';
import { autoTopupCommand } from './auto-topup.ts';
import { balanceCommand } from './balance.ts';
import { topupCommand } from './topup.ts';
import { transactionsCommand } from './transactions.ts';
import { verifyCommand } from './verify.ts';

/** `svc billing …` */
export function billingCommand(): Command {
  return new Command('billing')
    .description('show and buy the credit of this account; needs a `svc login` of the last hour')
    .addCommand(balanceCommand())
    .addCommand(transactionsCommand())
    .addCommand(topupCommand())
    .addCommand(autoTopupCommand())
    .addCommand(adjustCommand())
    .addCommand(verifyCommand());
}
