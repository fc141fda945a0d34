import { LIMITS } from '@svc/contract';
import type { SessionRecord } from '@svc/sdk';
import { Command } from 'commander';
import { integerBetween } from '../../arguments/numbers.ts';
import { formatTable } from '../../output/table.ts';
import { formatDuration } from '../../output/units.ts';
import { withClient } from '../with-client.ts';

interface Options {
  readonly limit?: number;
  readonly offset?: number;
  readonly json?: boolean;
}

const HEADING = ['ID', 'STATUS', 'AGENT', 'MODEL', 'TEMPLATE', 'AGE', 'SANDBOX'];
const parseLimit = integerBetween(1, LIMITS.pageMax, '--limit 50');
const parseOffset = integerBetween(0, Number.MAX_SAFE_INTEGER, '--offset 20');

/** `svc session list`: the account's sessions, newest first. */
export function listSessionsCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list the sessions of this account, newest first')
    .option('--limit <n>', `how many, default ${LIMITS.pageDefault}`, parseLimit)
    .option('--offset <n>', 'leave out so many of the newest', parseOffset)
    .option('--json', 'print the answer as JSON')
    .action(({ json, ...query }: Options) =>
      withClient(async (client, signal) => {
        const answer = await client.sessions.list(query, { signal });
        const { sessions, total } = answer;
        console.log(json ? JSON.stringify(answer) : formatTable([HEADING, ...sessions.map(rowOf)]));
        if (!json && sessions.length < total) console.error(`svc: ${sessions.length} of ${total}`);
      }),
    );
}

function rowOf(session: SessionRecord): string[] {
  return [
    session.chat_session_id,
    session.status,
    session.agent.kind,
    session.llm.model ?? '',
    session.template,
    formatDuration(Math.max(0, Date.now() - Date.parse(session.created_at))),
    session.vm_id ?? '',
  ];
}
