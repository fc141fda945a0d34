import { Command } from 'commander';
import { integerBetween } from '../../arguments/parsers.ts';
import { withAccount } from '../../connection/client.ts';
import { formatTable, formatUsd } from '../../output/format.ts';

const HEADING = ['ID', 'TIME', 'AMOUNT', 'DESCRIPTION'];

interface Options {
  readonly limit: number;
  readonly offset: number;
  readonly json?: boolean;
}

/** `svc billing transactions` */
export function transactionsCommand(): Command {
  const offset = integerBetween(0, Number.MAX_SAFE_INTEGER, '--offset 20');
  return new Command('transactions')
    .description('list what was added and deducted, newest first')
    .option('--limit <number>', 'most to list', integerBetween(1, 100, '--limit 50'), 20)
    .option('--offset <number>', 'newer ones to skip', offset, 0)
    .option('--json', 'print the response as JSON')
    .action(({ limit, offset: skipped, json }: Options) =>
      withAccount(async (client, signal) => {
        const list = await client.billing.transactions({ limit, offset: skipped }, { signal });
        const rows = list.map(({ id, amount, description, timestamp }) => [
          id,
          timestamp,
          formatUsd(amount / 100),
          description,
        ]);
        console.log(json ? JSON.stringify(list) : formatTable([HEADING, ...rows]));
      }),
    );
}
