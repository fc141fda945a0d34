import { Command } from 'commander';
import { parseDollars } from '../../arguments/dollars.ts';
import { withAccount } from '../../connection/client.ts';

/** `svc billing topup` */
export function topupCommand(): Command {
  return new Command('topup')
    .description('buy credit: prints the link to the page on which to pay')
    .argument('<dollars>', 'US dollars, from 5 to 10000', parseDollars)
    .option('--json', 'print the response as JSON')
    .action((cents: number, { json }: { json?: boolean }) =>
      withAccount(async (client, signal) => {
        const checkout = await client.billing.checkout(cents, { signal });
        console.log(json ? JSON.stringify(checkout) : checkout.url);
      }),
    );
}
