import type { ConnectOptions, SessionConnection } from '@svc/sdk';
import { untilAborted } from '@svc/service-kit/concurrency';
import { Conversation, type Outcome } from './conversation.ts';
import { openPrompts } from './prompts.ts';
import { Transcript } from './transcript.ts';

export interface ChatOptions {
  /** The only prompt of the chat; by default, prompts are read from standard input until it ends. */
  readonly task?: string | undefined;
  /** First replays the frames after this number. */
  readonly afterSeq?: number | undefined;
  /** Whether to show the frames until the connection ends, without any prompts. */
  readonly watch?: boolean | undefined;
}

/** The user has left the chat. */
class ChatLeft extends Error {}

/**
 * Talks to an agent over the connection that `open` makes, and returns the outcome of the last task. Ctrl-C interrupts the running task;
 * pressed again, or twice while nothing is running, it leaves the chat. The agent itself stays.
 */
export async function chat(
  open: (options: ConnectOptions) => SessionConnection | Promise<SessionConnection>,
  { task, afterSeq, watch }: ChatOptions,
): Promise<Outcome> {
  const transcript = new Transcript();
  const left = new AbortController();
  await using connection = await open({
    afterSeq,
    onStatus: (status) => {
      if (status === 'disconnected') transcript.note('connection lost; reconnecting …');
    },
  });
  const conversation = new Conversation(connection, (frame) => transcript.show(frame));
  const interrupt = interruptHandler(conversation, transcript, () => left.abort(new ChatLeft()));
  process.on('SIGINT', interrupt);
  const stop = () => left.abort(new ChatLeft());
  process.once('SIGTERM', stop);
  const over = AbortSignal.any([left.signal, conversation.over]);
  try {
    await untilAborted(conversation.ready, over);
    if (watch === true) return await untilAborted(new Promise<never>(() => undefined), over);
    if (task !== undefined) return await untilAborted(conversation.task(task), over);
    return await converse(conversation, over, interrupt);
  } catch (error) {
    if (error instanceof ChatLeft) return 'interrupted';
    throw error;
  } finally {
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', stop);
  }
}

/** Handles one prompt after another. A line that starts with `!` is a shell command for the sandbox. */
async function converse(
  conversation: Conversation,
  over: AbortSignal,
  onInterrupt: () => void,
): Promise<Outcome> {
  const prompts = openPrompts(onInterrupt);
  let last: Outcome = 'completed';
  try {
    for (;;) {
      const line = (await prompts.next(over))?.trim();
      if (line === undefined || line === '/quit') return last;
      if (line === '') continue;
      const outcome = line.startsWith('!')
        ? conversation.exec(line.slice(1))
        : conversation.task(line);
      last = await untilAborted(outcome, over);
    }
  } finally {
    prompts.close();
  }
}

/** Returns the Ctrl-C handler: the first press interrupts or warns, a second one on the same task leaves. */
function interruptHandler(
  conversation: Conversation,
  transcript: Transcript,
  leave: () => void,
): () => void {
  let pressedAt: string | undefined;
  return () => {
    const { current, isBusy } = conversation;
    if (pressedAt === current) {
      leave();
      return;
    }
    pressedAt = current;
    if (isBusy) conversation.interrupt();
    transcript.note(
      isBusy
        ? 'interrupting; press Ctrl-C again to leave'
        : 'press Ctrl-C again, or Ctrl-D, to leave',
    );
  };
}
