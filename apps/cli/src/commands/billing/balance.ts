import { Command } from 'commander';
import { withAccount } from '../../connection/client.ts';
import { formatUsd } from '../../output/format.ts';

/** `svc billing balance` */
export function balanceCommand(): Command {
  return new Command('balance')
    .description('show the credit')
    .option('--json', 'print the response as JSON')
    .action(({ json }: { json?: boolean }) =>
      withAccount(async (client, signal) => {
        const balance = await client.billing.balance({ signal });
        console.log(json ? JSON.stringify({ credit_balance: balance }) : formatUsd(balance / 100));
      }),
    );
}
