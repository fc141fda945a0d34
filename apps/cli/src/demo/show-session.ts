import { randomBytes } from 'node:crypto';
import type { Agent } from '@svc/contract';
import type { CreateSessionRequest, SessionAccess, SvcClient } from '@svc/sdk';
import { CliError } from '../output/errors.ts';
import type { Progress } from '../output/progress.ts';
import { Conversation } from '../sessions/conversation.ts';
import { Transcript } from '../sessions/transcript.ts';
import { PROMPTS } from './script.ts';

/** Generous, because a vendor's agent starts slowly under emulation. */
const TASK_TIMEOUT_MS = 300_000;
const APP = 'svc-demo';

export interface ShowOptions {
  readonly client: SvcClient;
  readonly agent: Agent;
  readonly llm: CreateSessionRequest['llm'];
  readonly key: string;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  /** Called when the session has moved to its second sandbox, before the first prompt there. */
  readonly onResumed: () => void;
}

/** Runs the demo on a service: a session with two tasks, its resumption in a fresh sandbox, and a third task there. */
export async function showSession(options: ShowOptions): Promise<void> {
  const { client, agent, llm, key, progress, signal } = options;
  const bundle = `demo-${randomBytes(4).toString('hex')}`;
  await using cleanUp = new AsyncDisposableStack();
  await client.secrets.create(bundle, { LLM_API_KEY: key }, { signal });
  cleanUp.defer(async () => {
    await client.secrets.delete(bundle);
  });
  const request: CreateSessionRequest = {
    agent: { kind: agent },
    app: { id: APP },
    template: 'standard',
    llm,
    secrets: [bundle],
    user_id: 'demo',
  };
  const access = await progress.step(
    'session',
    () => client.sessions.create(request, { signal }),
    ({ chat_session_id: id }) => id,
  );
  const id = access.chat_session_id;
  cleanUp.defer(async () => {
    await client.sessions.delete(id);
  });
  const sandboxOf = async () => (await client.sessions.get(id, { signal })).vm_id ?? 'none';
  const first = await sandboxOf();
  progress.line(`  sandbox: ${first}`);
  await talk(options, access, [PROMPTS.work, PROMPTS.remember]);
  progress.line('Disconnected. The session resumes in a fresh micro-VM; the first one is gone.');
  const resumed = await progress.step(
    'resume',
    () => client.sessions.resume(id, { signal }),
    ({ resumed_from: from }) => `previous status: ${from.previous_status}`,
  );
  progress.line(`  sandbox: ${await sandboxOf()}, no longer ${first}`);
  options.onResumed();
  await talk(options, resumed, [PROMPTS.recall]);
}

/** Connects, runs these tasks one after another, prints what happens, and disconnects. */
async function talk(
  { client, progress, signal }: ShowOptions,
  access: SessionAccess,
  prompts: readonly string[],
): Promise<void> {
  const transcript = new Transcript(process.stdout, process.stdout);
  await using connection = client.sessions.connect(access, { signal });
  const conversation = new Conversation(connection, (frame) => transcript.show(frame));
  await conversation.ready;
  for (const prompt of prompts) {
    progress.line('');
    progress.line(`› ${prompt}`);
    const outcome = await withTimeout(conversation.task(prompt));
    if (outcome !== 'completed') {
      throw new CliError('demo_failed', `the task ended with the outcome "${outcome}"`, {
        next: 'its output above says why; `svc doctor` checks the machine',
      });
    }
  }
  progress.line('');
}

async function withTimeout<T>(work: Promise<T>): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    timeout.reject(
      new CliError(
        'demo_failed',
        `the agent did not finish its task within ${TASK_TIMEOUT_MS / 1000} s`,
        {
          next: 'try again; `svc doctor` checks the machine',
        },
      ),
    );
  }, TASK_TIMEOUT_MS);
  try {
    return await Promise.race([work, timeout.promise]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined);
  }
}
