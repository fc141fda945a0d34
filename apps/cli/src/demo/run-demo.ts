import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import type { Agent, LlmVendor } from '@svc/contract';
import type { CreateSessionRequest, SvcClient } from '@svc/sdk';
import { connect } from '../connection/client.ts';
import { Progress } from '../output/progress.ts';
import { servicePaths } from '../service/paths.ts';
import { runningService } from '../service/service-record.ts';
import { StopSignals } from '../service/stop-signals.ts';
import { vendorKey } from '../sessions/llm-vendor.ts';
import { startPrivateService } from './private-service.ts';
import { REMEMBERED } from './script.ts';
import { isIn, startScriptedModel } from './scripted-model.ts';
import { showSession } from './show-session.ts';

export interface DemoOptions {
  readonly agent: Agent;
  /** Environment variable with a real key; without it, the model is scripted. */
  readonly keyEnv?: string;
  readonly vendor?: LlmVendor;
  readonly model?: string;
}

/** The service and the model of a demo. */
interface Environment {
  readonly client: SvcClient;
  readonly llm: CreateSessionRequest['llm'];
  readonly key: string;
  /** Called when the session has moved to its second sandbox. */
  readonly onResumed: () => void;
  /** The last line of the demo. */
  readonly closingNote: () => string;
}

interface DemoContext extends DemoOptions {
  readonly progress: Progress;
  readonly signal: AbortSignal;
  readonly cleanUp: AsyncDisposableStack;
}

/** Shows a whole agent session and cleans up everything that it started. */
export async function runDemo(options: DemoOptions): Promise<void> {
  const progress = new Progress();
  await using cleanUp = new AsyncDisposableStack();
  const { signal } = cleanUp.use(new StopSignals());
  const context = { ...options, progress, signal, cleanUp };
  const { closingNote, ...environment } = await (options.keyEnv === undefined
    ? scriptedEnvironment(context)
    : realEnvironment(context, options.keyEnv));
  await showSession({ ...environment, agent: options.agent, progress, signal });
  progress.line(closingNote());
}

/** A temporary service that may reach no address that is not public, except that of the scripted model. */
async function scriptedEnvironment({
  agent,
  progress,
  signal,
  cleanUp,
}: DemoContext): Promise<Environment> {
  for (const line of INTRODUCTION) progress.line(line);
  const directory = await temporaryDirectory(progress, cleanUp);
  const { server, llm, settings } = await startScriptedModel(agent, directory);
  cleanUp.defer(() => server.close());
  const client = await startPrivateService({ directory, settings, progress, signal, cleanUp });
  let before = 0;
  return {
    client,
    llm,
    key: 'a-placeholder-for-the-scripted-model',
    onResumed: () => {
      before = server.requests.length;
    },
    closingNote: () =>
      isIn(server.requests.slice(before), REMEMBERED)
        ? `The agent in the fresh sandbox has the conversation: it sent "… ${REMEMBERED} …" to the model again.`
        : 'The agent in the fresh sandbox did not send the earlier conversation to the model.',
  };
}

const INTRODUCTION: readonly string[] = [
  'The model of this demo is scripted: it gives prepared answers. Everything else is real:',
  'the micro-VM, the agent in it, its tools, the session.',
  'To use a real model with your own key: svc demo --key-env ANTHROPIC_API_KEY',
  '',
];

/** The service that is running on this machine, or else a temporary one, with a model of the vendor. */
async function realEnvironment(context: DemoContext, variable: string): Promise<Environment> {
  const { model, progress, signal, cleanUp } = context;
  const { key, vendor } = vendorKey(variable, context);
  progress.line(`The model is a real one from ${vendor}, billed to the key in ${variable}.`);
  progress.line('');
  const environment = {
    llm: { vendor, ...(model === undefined ? {} : { model }) },
    key,
    onResumed: () => undefined,
    closingNote: () =>
      'The last answer came from a sandbox that had not received the first two prompts.',
  };
  const running = await runningService(servicePaths(loadConfig().dataDir).record);
  if (running?.state === 'ready') {
    progress.line(`It runs on the service at ${running.base_url}.`);
    return { client: cleanUp.use(await connect()), ...environment };
  }
  const directory = await temporaryDirectory(progress, cleanUp);
  const service = { directory, settings: {}, progress, signal, cleanUp };
  return { client: await startPrivateService(service), ...environment };
}

async function temporaryDirectory(
  progress: Progress,
  cleanUp: AsyncDisposableStack,
): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-demo-'));
  cleanUp.defer(() => rm(directory, { recursive: true, force: true }));
  progress.line(`It runs on a temporary service, which is removed at the end (${directory}).`);
  return directory;
}
