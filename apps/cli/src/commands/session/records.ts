import { LIMITS } from '@svc/contract';
import type { SessionRecord } from '@svc/sdk';
import { Command } from 'commander';
import { collectSessionId } from '../../arguments/ids.ts';
import { integerBetween } from '../../arguments/parsers.ts';
import { withClient } from '../../connection/client.ts';
import { formatAge, formatTable } from '../../output/format.ts';
import { SessionAccessStore } from '../../sessions/access-store.ts';

interface ListOptions {
  readonly limit?: number;
  readonly offset?: number;
  readonly json?: boolean;
}

interface RemoveOptions {
  readonly erase?: boolean;
  readonly json?: boolean;
}

const HEADING = ['ID', 'STATUS', 'AGENT', 'MODEL', 'TEMPLATE', 'AGE', 'SANDBOX'];
const parseLimit = integerBetween(1, LIMITS.pageMax, '--limit 50');
const parseOffset = integerBetween(0, Number.MAX_SAFE_INTEGER, '--offset 20');

/** `svc session list`: shows the sessions of the account, newest first. */
export function listCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list the sessions of this account, newest first')
    .option('--limit <n>', `maximum number; default: ${LIMITS.pageDefault}`, parseLimit)
    .option('--offset <n>', 'skip this many of the newest', parseOffset)
    .option('--json', 'print the response as JSON')
    .action(({ json, ...query }: ListOptions) =>
      withClient(async (client, signal) => {
        const page = await client.sessions.list(query, { signal });
        const { sessions, total } = page;
        console.log(json ? JSON.stringify(page) : formatTable([HEADING, ...sessions.map(rowOf)]));
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
    formatAge(session.created_at),
    session.vm_id ?? '',
  ];
}

/** `svc session rm`: ends sessions and waits until their sandboxes are gone. */
export function removeCommand(): Command {
  return new Command('rm')
    .description('end sessions; they can be resumed, unless they are erased')
    .argument('<ids...>', 'session ids', collectSessionId)
    .option('--erase', 'also erase their conversation, files and frames; they cannot be resumed')
    .option('--json', 'print each response as JSON')
    .action((ids: string[], { erase = false, json }: RemoveOptions) =>
      withClient(async (client, signal) => {
        const store = new SessionAccessStore();
        for (const id of ids) {
          const answer = await client.sessions.delete(id, { erase, signal });
          await store.remove(id);
          const outcome = answer.erased_at === undefined ? answer.status : 'erased';
          console.log(json ? JSON.stringify(answer) : `${id} ${outcome}`);
        }
      }),
    );
}
