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
import { addSizeOptions, requestedSize, type SizeOptions } from '../../arguments/sandbox-size.ts';
import { awaitCreation } from '../../output/creation.ts';
import { vendorOf } from '../../sessions/llm-vendor.ts';
import { TALK_HELP, TASK_OPTION, talk } from './talk.ts';

interface Options extends SizeOptions {
  readonly agent: Agent;
  readonly agentVersion?: string;
  readonly tool?: readonly string[];
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
  const command = new Command('start')
    .description('start a session with an agent and talk to it')
    .option('-a, --agent <name>', `agent to run: ${AGENTS.join(', ')}`, parseAgent, 'deictic')
    .option('--agent-version <version>', 'build of the agent; default: any')
    .option('--tool <name>', 'only tool of the agent; repeatable; default: all', collect)
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
    .option('-t, --template <name>', 'template of the sandbox', parseSessionTemplate, 'standard');
  return addSizeOptions(command)
    .option('--ttl <duration>', 'maximum lifetime, as in 2h; default: 1h', parseDuration)
    .option('--base-url <url>', 'another endpoint with the same API')
    .option('--app <id>', 'app that the session belongs to', 'svc-sandbox')
    .option(...TASK_OPTION)
    .addHelpText('after', TALK_HELP)
    .action((options: Options) =>
      talk((client, signal) => {
        const creation = client.sessions.create(requestOf(options), { signal });
        return awaitCreation('session', creation);
      }, options),
    );
}

/** Builds the request from the options. */
export function requestOf(options: Options): CreateSessionRequest {
  const {
    agent,
    agentVersion: version,
    vendor,
    model,
    secrets,
    template,
    ttl,
    baseUrl,
    app,
  } = options;
  const tools = options.tool;
  return {
    agent: { kind: agent, ...(version === undefined ? {} : { version }) },
    app: {
      id: app,
      ...(tools === undefined ? {} : { capability_sets: { default: { tools: [...tools] } } }),
    },
    template,
    ...requestedSize(options),
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
