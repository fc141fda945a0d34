import { userInfo } from 'node:os';
import {
  AGENTS,
  type Agent,
  LLM_VENDORS,
  type LlmVendor,
  type SessionTemplate,
} from '@svc/contract';
import type { CreateSessionRequest } from '@svc/sdk';
import { Command } from 'commander';
import { parseAgent, parseSessionTemplate, parseVendor } from '../../arguments/choices.ts';
import { collect, parseDuration } from '../../arguments/parsers.ts';
import { vendorOf } from '../../sessions/llm-vendor.ts';
import { TALK_HELP, TASK_OPTION, talk } from './talk.ts';

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

/** `svc session start`: starts a session with an agent and a chat with it. */
export function startCommand(): Command {
  return new Command('start')
    .description('start a session with an agent and talk to it')
    .option('-a, --agent <name>', `agent to run: ${AGENTS.join(', ')}`, parseAgent, 'deictic')
    .option(
      '--vendor <name>',
      `model vendor: ${LLM_VENDORS.join(', ')}; default: from agent and model`,
      parseVendor,
    )
    .option(
      '-m, --model <name>',
      "model; default: the one of the bundle, or else the vendor's default",
    )
    .option(
      '-s, --secrets <bundle>',
      'secret bundle with LLM_API_KEY; repeatable (see `svc secrets`)',
      collect,
    )
    .option('-t, --template <name>', 'template of the sandbox', parseSessionTemplate, 'standard')
    .option('--ttl <duration>', 'maximum lifetime, as in 2h; default: 1h', parseDuration)
    .option('--base-url <url>', 'another endpoint with the same API')
    .option('--app <id>', 'app that the session belongs to', 'svc-sandbox')
    .option(...TASK_OPTION)
    .addHelpText('after', TALK_HELP)
    .action((options: Options) =>
      talk((client, signal) => client.sessions.create(requestOf(options), { signal }), options),
    );
}

/** Builds the request from the options. */
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
