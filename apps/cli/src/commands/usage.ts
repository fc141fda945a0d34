import { addDays, dayOf } from '@svc/contract';
import type { CurrentUsage, UsageHistoryEntry } from '@svc/sdk';
import { Command } from 'commander';
import { parseDay } from '../arguments/parsers.ts';
import { withClient } from '../connection/client.ts';
import { bar } from '../output/bar.ts';
import { formatTable, formatUsd } from '../output/format.ts';

const BAR_WIDTH = 24;
const DAYS_BEFORE_TODAY = 30;

interface Options {
  readonly from?: string;
  readonly to?: string;
  readonly json?: boolean;
}

/** `svc usage` */
export function usageCommand(): Command {
  return new Command('usage')
    .description('show what this account has used: this month, and each of the last days')
    .option('--from <date>', 'first day to show, in UTC; 30 days ago by default', parseDay)
    .option('--to <date>', 'the day after the last one; tomorrow by default', parseDay)
    .option('--json', 'print the responses as JSON')
    .action(({ json, ...range }: Options) => {
      // One reading of the clock for both ends: midnight may pass before the service answers.
      const today = dayOf(Date.now());
      const { from = addDays(today, -DAYS_BEFORE_TODAY), to = addDays(today, 1) } = range;
      return withClient(async (client, signal) => {
        const current = await client.usage.current({ signal });
        const { entries } = await client.usage.history({ from, to }, { signal });
        if (json) console.log(JSON.stringify({ ...current, entries }));
        else console.log(`${summaryOf(current)}\n\n${tableOf(entries)}`);
      });
    });
}

function summaryOf({ period, infra_usage: used, credits }: CurrentUsage): string {
  const topup = credits.auto_topup_enabled ? 'automatic top-up' : 'no automatic top-up';
  return formatTable([
    ['period', period],
    ['cpu seconds', String(used.cpu_seconds)],
    ['sandboxes', String(used.sandbox_count)],
    ['cost', formatUsd(used.credits_used_usd)],
    ['balance', `${formatUsd(credits.balance_usd)}, ${topup}`],
  ]);
}

const HEADING = ['DAY', 'CPU SECONDS', 'SANDBOXES', 'SESSIONS', 'COST', ''];

/** One line per day, with a bar for its share of the CPU time of the busiest day. */
function tableOf(entries: readonly UsageHistoryEntry[]): string {
  const most = Math.max(...entries.map((entry) => entry.infra_usage.cpu_seconds));
  const rows = entries.map(({ period_start, infra_usage: used, session_count }) => [
    period_start,
    used.cpu_seconds.toFixed(1),
    String(used.sandbox_count),
    String(session_count),
    formatUsd(used.credits_used_usd),
    bar(used.cpu_seconds, most, BAR_WIDTH),
  ]);
  return formatTable([HEADING, ...rows]);
}
