import type { SessionAddress, SvcClient } from '@svc/sdk';
import { untilAborted } from '@svc/service-kit/concurrency';
import { Conversation, type Outcome } from './conversation.ts';
import { openPrompts } from './prompts.ts';
import { Transcript } from './transcript.ts';

export interface ChatOptions {
  /** One prompt, after which the chat is left; default: prompts from standard input until it ends. */
  readonly task?: string | undefined;
  /** Shows what came after this frame first. */
  readonly afterSeq?: number | undefined;
}

/** Why a chat is left before its end. */
class Left extends Error {}

/**
 * Talks to a session's agent. Ctrl-C interrupts what runs; a second one, or one while nothing runs, leaves. Gives how
 * the last task ended. The session itself goes on.
 */
export async function chat(
  client: SvcClient,
  access: SessionAddress,
  { task, afterSeq }: ChatOptions,
): Promise<Outcome> {
  const transcript = new Transcript();
  const left = new AbortController();
  await using connection = client.sessions.connect(access, {
    afterSeq,
    onStatus: (status) => {
      if (status === 'disconnected') transcript.note('connection lost; trying again …');
    },
  });
  const conversation = new Conversation(connection, (frame) => transcript.show(frame));
  const interrupt = interrupter(conversation, transcript, () => left.abort(new Left()));
  process.on('SIGINT', interrupt);
  const stop = () => left.abort(new Left());
  process.once('SIGTERM', stop);
  const over = AbortSignal.any([left.signal, conversation.over]);
  try {
    await untilAborted(conversation.ready, over);
    if (task !== undefined) return await untilAborted(conversation.task(task), over);
    return await converse(conversation, over, interrupt);
  } catch (error) {
    if (error instanceof Left) return 'interrupted';
    throw error;
  } finally {
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', stop);
  }
}

/** One prompt after the other. A line that starts with `!` is a command for the sandbox. */
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
      const asked = line.startsWith('!')
        ? conversation.exec(line.slice(1))
        : conversation.task(line);
      last = await untilAborted(asked, over);
    }
  } finally {
    prompts.close();
  }
}

/** What Ctrl-C does: the first one interrupts, or warns; a second one on the same leaves. */
function interrupter(
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
      isBusy ? 'interrupting; Ctrl-C again leaves' : 'Ctrl-C again, or Ctrl-D, leaves',
    );
  };
}
