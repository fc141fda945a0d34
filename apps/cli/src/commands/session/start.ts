import { userInfo } from 'node:os';
import {
  AGENTS,
  type Agent,
  LLM_VENDORS,
  type LlmVendor,
  SESSION_TEMPLATES,
  type SessionTemplate,
} from '@svc/contract';
import type { CreateSessionRequest } from '@svc/sdk';
import { Command } from 'commander';
import { parseDuration } from '../../arguments/duration.ts';
import { collect, oneOf } from '../../arguments/words.ts';
import { vendorOf } from '../../sessions/vendor.ts';
import { TALK_HELP, talk } from './talk.ts';

interface Options {
  readonly agent: Agent;
  readonly vendor?: LlmVendor;
  readonly model?: string;
  readonly secrets?: readonly string[];
  readonly template: SessionTemplate;
  readonly ttl?: number;
  readonly baseUrl?: string;
  readonly app: string;
  readonly task?: string;
}

const parseAgent = oneOf(AGENTS, 'an agent', '--agent deictic');
const parseVendor = oneOf(LLM_VENDORS, 'a vendor', '--vendor anthropic');
const parseTemplate = oneOf(SESSION_TEMPLATES, 'a template for sessions', '--template standard');

/** `svc session start`: a session with an agent, and a chat with it. */
export function startCommand(): Command {
  return new Command('start')
    .description('start a session with an agent, and talk to it')
    .option('-a, --agent <name>', `who works: ${AGENTS.join(', ')}`, parseAgent, 'deictic')
    .option(
      '--vendor <name>',
      `whose models: ${LLM_VENDORS.join(', ')}; default: by agent and model`,
      parseVendor,
    )
    .option('-m, --model <name>', "model; default: the bundle's, else the vendor's default")
    .option(
      '-s, --secrets <bundle>',
      'secret bundle with LLM_API_KEY; repeatable (see `svc secrets`)',
      collect,
    )
    .option('-t, --template <name>', 'image of the sandbox', parseTemplate, 'standard')
    .option('--ttl <duration>', 'longest life, as in 2h; default 1h', parseDuration)
    .option('--base-url <url>', 'another endpoint that speaks the same API')
    .option('--app <id>', 'app that the session belongs to', 'svc-sandbox')
    .option('--task <prompt>', 'give it this one task, show what it does, and leave')
    .addHelpText('after', TALK_HELP)
    .action((options: Options) =>
      talk((client, signal) => client.sessions.create(requestOf(options), { signal }), options),
    );
}

/** The request that the options stand for. */
export function requestOf(options: Options): CreateSessionRequest {
  const { agent, vendor, model, secrets, template, ttl, baseUrl, app } = options;
  return {
    agent: { kind: agent },
    app: { id: app },
    template,
    llm: {
      vendor: vendor ?? vendorOf(agent, model),
      ...(model === undefined ? {} : { model }),
      ...(baseUrl === undefined ? {} : { base_url: baseUrl }),
    },
    user_id: userInfo().username,
    ...(secrets === undefined ? {} : { secrets: [...secrets] }),
    ...(ttl === undefined ? {} : { ttl_seconds: ttl }),
  };
}
