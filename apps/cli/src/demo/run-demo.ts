import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Agent, LlmVendor } from '@svc/contract';
import type { CreateSessionRequest, SvcClient } from '@svc/sdk';
import { loadConfig } from '@svc/service-kit/config';
import { connect } from '../connection/resolve.ts';
import { Progress } from '../output/progress.ts';
import { servicePlaces } from '../service/places.ts';
import { runningService } from '../service/service-record.ts';
import { StopSignals } from '../service/stop-signals.ts';
import { vendorKey } from './key.ts';
import { startPrivateService } from './private-service.ts';
import { REMEMBERED } from './prompts.ts';
import { requestsWith, startScriptedModel } from './scripted-model.ts';
import { showSession } from './show-session.ts';

export interface DemoOptions {
  readonly agent: Agent;
  /** Environment variable that holds a real key; none: the model is scripted. */
  readonly keyEnv?: string;
  readonly vendor?: LlmVendor;
  readonly model?: string;
}

/** Where the demo happens, and what its model is. */
interface Stage {
  readonly client: SvcClient;
  readonly llm: CreateSessionRequest['llm'];
  readonly key: string;
  /** What can be said at the end. */
  readonly closingNote: () => string;
}

interface Setting extends DemoOptions {
  readonly progress: Progress;
  readonly signal: AbortSignal;
  readonly cleanUp: AsyncDisposableStack;
}

/** Shows a whole session with an agent, and leaves nothing behind. */
export async function runDemo(options: DemoOptions): Promise<void> {
  const progress = new Progress();
  await using cleanUp = new AsyncDisposableStack();
  const stop = cleanUp.use(new StopSignals());
  const { signal } = stop;
  const setting = { ...options, progress, signal, cleanUp };
  const { client, llm, key, closingNote } = await (options.keyEnv === undefined
    ? scripted(setting)
    : real(setting, options.keyEnv));
  await showSession({ client, llm, key, agent: options.agent, progress, signal });
  progress.line(closingNote());
}

/** A service of the demo's own, whose only exception from the rule of public addresses is the demo's model. */
async function scripted({ agent, progress, signal, cleanUp }: Setting): Promise<Stage> {
  progress.line(
    'The model of this demo is scripted: it says what is written down for it, whatever you',
  );
  progress.line(
    'might ask. All else is real: the micro-VM, the agent in it, its tools, the session.',
  );
  progress.line('With a key of yours a real model answers: svc demo --key-env ANTHROPIC_API_KEY');
  progress.line('');
  const directory = await temporaryDirectory(progress, cleanUp);
  const { server, llm, settings } = await startScriptedModel(agent, directory);
  cleanUp.defer(() => server.close());
  const client = await startPrivateService({ directory, settings, progress, signal, cleanUp });
  const closingNote = () => {
    const last = server.requests.at(-1);
    const remembers = last !== undefined && requestsWith(server, REMEMBERED) > 0;
    return remembers
      ? `The agent on the fresh sandbox had the conversation: it sent "…${REMEMBERED}…" to the model again.`
      : 'The agent did not send the earlier conversation to the model.';
  };
  return { client, llm, key: 'a-placeholder-for-the-scripted-model', closingNote };
}

/** The service that runs here, or one of the demo's own; the model is the vendor's. */
async function real(setting: Setting, variable: string): Promise<Stage> {
  const { agent, model, progress, signal, cleanUp } = setting;
  const { key, vendor } = vendorKey(variable, setting);
  progress.line(`The model is a real one of ${vendor}, paid with the key in ${variable}.`);
  progress.line('');
  const running = await runningService(servicePlaces(loadConfig().dataDir).record);
  const llm = { vendor, ...(model === undefined ? {} : { model }) };
  const closingNote = () =>
    `${agent} remembered what the earlier sandbox was told, if all went well.`;
  if (running?.state === 'ready') {
    progress.line(`It happens on the service at ${running.base_url}.`);
    const client = cleanUp.use(await connect());
    return { client, llm, key, closingNote };
  }
  const directory = await temporaryDirectory(progress, cleanUp);
  const service = { directory, settings: {}, progress, signal, cleanUp };
  return { client: await startPrivateService(service), llm, key, closingNote };
}

async function temporaryDirectory(
  progress: Progress,
  cleanUp: AsyncDisposableStack,
): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-demo-'));
  cleanUp.defer(() => rm(directory, { recursive: true, force: true }));
  progress.line(`A service of its own starts for it, and is removed at the end (${directory}).`);
  return directory;
}
