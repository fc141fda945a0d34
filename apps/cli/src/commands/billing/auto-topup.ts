import type { AutoTopupConfig } from '@svc/sdk';
import { Command } from 'commander';
import { parseDollars } from '../../arguments/dollars.ts';
import { withAccount } from '../../connection/client.ts';
import { formatUsd } from '../../output/format.ts';

interface Options {
  readonly below?: number;
  readonly amount?: number;
  readonly off?: boolean;
  readonly json?: boolean;
}

/** `svc billing auto-topup` */
export function autoTopupCommand(): Command {
  return new Command('auto-topup')
    .description('show or change when the saved card is charged by itself')
    .option('--below <dollars>', 'charge when the credit is below this; enables', parseDollars)
    .option('--amount <dollars>', 'how much to charge, at least 5; enables', parseDollars)
    .option('--off', 'never charge')
    .option('--json', 'print the settings as JSON')
    .action((options: Options) =>
      withAccount(async (client, signal) => {
        const current = await client.billing.autoTopup({ signal });
        const settings = changed(current, options);
        if (settings !== current) await client.billing.setAutoTopup(settings, { signal });
        console.log(options.json ? JSON.stringify(settings) : describe(settings));
      }),
    );
}

/** The settings after the change that the options ask for. The same object if they ask for none. */
function changed(current: AutoTopupConfig, { below, amount, off }: Options): AutoTopupConfig {
  if (off) return { ...current, enabled: false };
  if (below === undefined && amount === undefined) return current;
  return {
    enabled: true,
    threshold_amount: below ?? current.threshold_amount,
    topup_amount: amount ?? current.topup_amount,
  };
}

function describe({ enabled, threshold_amount, topup_amount }: AutoTopupConfig): string {
  if (!enabled) return 'off';
  const below = formatUsd(threshold_amount / 100);
  return `charges ${formatUsd(topup_amount / 100)} when the credit is below ${below}`;
}
