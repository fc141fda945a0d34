import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import type { Agent, LlmVendor } from '@svc/contract';
import type { CreateSessionRequest, SvcClient } from '@svc/sdk';
import { connect } from '../connection/resolve.ts';
import { Progress } from '../output/progress.ts';
import { servicePlaces } from '../service/places.ts';
import { runningService } from '../service/service-record.ts';
import { StopSignals } from '../service/stop-signals.ts';
import { vendorKey } from './key.ts';
import { startPrivateService } from './private-service.ts';
import { REMEMBERED } from './prompts.ts';
import { isIn, startScriptedModel } from './scripted-model.ts';
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
  /** Called once the session is on its second sandbox. */
  readonly onResumed: () => void;
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
  const { signal } = cleanUp.use(new StopSignals());
  const setting = { ...options, progress, signal, cleanUp };
  const { closingNote, ...stage } = await (options.keyEnv === undefined
    ? scripted(setting)
    : real(setting, options.keyEnv));
  await showSession({ ...stage, agent: options.agent, progress, signal });
  progress.line(closingNote());
}

/** A service of the demo's own, whose only exception from the rule of public addresses is the demo's model. */
async function scripted({ agent, progress, signal, cleanUp }: Setting): Promise<Stage> {
  for (const line of SCRIPTED) progress.line(line);
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
        ? `The agent on the fresh sandbox had the conversation: it sent "… ${REMEMBERED} …" to the model again.`
        : 'The agent on the fresh sandbox did not send the earlier conversation to the model.',
  };
}

const SCRIPTED: readonly string[] = [
  'The model of this demo is scripted: it says what is written down for it, whatever you',
  'might ask. All else is real: the micro-VM, the agent in it, its tools, the session.',
  'With a key of yours a real model answers: svc demo --key-env ANTHROPIC_API_KEY',
  '',
];

/** The service that runs here, or one of the demo's own; the model is the vendor's. */
async function real(setting: Setting, variable: string): Promise<Stage> {
  const { model, progress, signal, cleanUp } = setting;
  const { key, vendor } = vendorKey(variable, setting);
  progress.line(`The model is a real one of ${vendor}, paid with the key in ${variable}.`);
  progress.line('');
  const stage = {
    llm: { vendor, ...(model === undefined ? {} : { model }) },
    key,
    onResumed: () => undefined,
    closingNote: () =>
      'The last answer came from a sandbox that had not heard the first two prompts.',
  };
  const running = await runningService(servicePlaces(loadConfig().dataDir).record);
  if (running?.state === 'ready') {
    progress.line(`It happens on the service at ${running.base_url}.`);
    return { client: cleanUp.use(await connect()), ...stage };
  }
  const directory = await temporaryDirectory(progress, cleanUp);
  const service = { directory, settings: {}, progress, signal, cleanUp };
  return { client: await startPrivateService(service), ...stage };
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
