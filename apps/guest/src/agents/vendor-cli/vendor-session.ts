import type { AgentContext, AgentSession, AgentTask, TaskOutcome } from '../agent.ts';
import { formatConversation } from './conversation.ts';
import type { Dialogue, TurnEnd, VendorCli } from './dialogue.ts';
import { AgentFailure } from './failure.ts';
import { killMarked } from './kill-marked.ts';
import { packTranscript } from './transcript.ts';
import { TurnFrames } from './turn-frames.ts';
import { aborted, failAfter, failAtEnd, failInSilence, failWhenAborted } from './waits.ts';

/** Time limits, in milliseconds. */
export interface Deadlines {
  /**
   * From the start of the process until it accepts prompts. A cold start reads hundreds of MiB, which takes minutes on an
   * emulated CPU with busy neighbours.
   */
  readonly start: number;
  /** From an interrupt until the end of the turn; after it the process is ended. */
  readonly interrupt: number;
  /** Longest silence of a CLI in a turn; longer than its tools and the model may take. */
  readonly silence: number;
}

export const DEADLINES: Deadlines = { start: 300_000, interrupt: 10_000, silence: 30 * 60_000 };

interface Opened {
  readonly env: string;
  readonly dialogue: Promise<Dialogue>;
  /** Ends the wait for a starting process. */
  readonly cancelStart: AbortController;
}

/** A conversation with a vendor's CLI: one process for many turns, restarted when it ends or its environment changes. */
export class VendorSession implements AgentSession {
  readonly #context: AgentContext;
  readonly #cli: VendorCli;
  readonly #deadlines: Deadlines;
  #opened: Opened | undefined;
  #closing: Promise<void> | undefined;

  constructor(context: AgentContext, cli: VendorCli, deadlines: Deadlines) {
    this.#context = context;
    this.#cli = cli;
    this.#deadlines = deadlines;
    // Starts the process ahead of the first task. That task reports a failure, or retries the start.
    this.#ready().catch((error: unknown) => context.log(`${String(error)}\n`));
  }

  async runTask(task: AgentTask, signal: AbortSignal): Promise<TaskOutcome> {
    this.#cli.tools?.duringTask(signal);
    const frames = new TurnFrames(this.#context);
    const end = await this.#run(task.prompt, frames, signal).catch(
      (error: unknown): TurnEnd => ({ status: 'failed', failure: failureOf(error) }),
    );
    if (end.status === 'completed') {
      frames.closeCalls('It continues in the background.', false);
      return { status: 'completed', result: end.result || frames.lastMessage };
    }
    if (end.status === 'interrupted' || signal.aborted) {
      frames.closeCalls('Interrupted.', true);
      return { status: 'interrupted', result: frames.lastMessage };
    }
    frames.closeCalls('The turn ended before the tool did.', true);
    const { code, message } = end.failure;
    const id = task.id === undefined ? {} : { id: task.id };
    this.#context.emit({ type: 'error', code, message, ...id });
    return { status: 'failed', result: message };
  }

  conversation(): string {
    const { conversation: id, transcripts } = this.#cli;
    if (id === undefined) return formatConversation(undefined);
    // A session's files are saved, and its transcripts with them.
    const isSaved = this.#context.setup.mode === 'session';
    const transcript = isSaved ? undefined : packTranscript(transcripts, id);
    return formatConversation(transcript === undefined ? { id } : { id, transcript });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#end();
    await killMarked(this.#cli.mark);
    this.#cli.tools?.close();
  }

  async #run(prompt: string, frames: TurnFrames, signal: AbortSignal): Promise<TurnEnd> {
    const interrupted = aborted(signal);
    const dialogue = await Promise.race([interrupted, this.#ready()]);
    if (dialogue === undefined) return { status: 'interrupted' };
    const over = new AbortController();
    const { name } = this.#cli;
    try {
      return await Promise.race([
        dialogue.runTurn(prompt, frames),
        failAtEnd(name, dialogue),
        failInSilence(name, dialogue, this.#deadlines.silence, over.signal),
        interrupted.then(() => this.#interrupt(dialogue, over.signal)),
      ]);
    } catch (error) {
      // The state of the process is unknown.
      await this.#end();
      throw error;
    } finally {
      over.abort();
    }
  }

  /** Interrupts the turn. Never resolves; rejects when the CLI does not end the turn in time. */
  async #interrupt(dialogue: Dialogue, over: AbortSignal): Promise<never> {
    if (!over.aborted) dialogue.interrupt();
    const detail = `${this.#cli.name} did not react to an interrupt.`;
    return failAfter(this.#deadlines.interrupt, detail, over);
  }

  /** A process that accepts prompts. Starts one if there is none or the environment has changed. */
  async #ready(): Promise<Dialogue> {
    const values = this.#cli.environment();
    const env = JSON.stringify(Object.entries(values).sort());
    if (this.#opened !== undefined && this.#opened.env !== env) await this.#end();
    if (this.#closing !== undefined) throw new AgentFailure('agent_failed', 'It was closed.');
    if (this.#opened === undefined) {
      const cancelStart = new AbortController();
      this.#opened = { env, cancelStart, dialogue: this.#open(values, cancelStart.signal) };
    }
    return this.#opened.dialogue;
  }

  async #open(env: Record<string, string>, cancelStart: AbortSignal): Promise<Dialogue> {
    const over = new AbortController();
    const { start } = this.#deadlines;
    const { name } = this.#cli;
    let dialogue: Dialogue | undefined;
    try {
      dialogue = await this.#cli.open(env);
      const late = `${name} was not ready after ${start / 1000} seconds.`;
      await Promise.race([
        dialogue.ready,
        failAtEnd(name, dialogue),
        failAfter(start, late, over.signal),
        failWhenAborted(cancelStart, `${name} was ended.`),
      ]);
      void this.#forgetAtEnd(dialogue);
      return dialogue;
    } catch (error) {
      this.#opened = undefined;
      await dialogue?.stop();
      throw error;
    } finally {
      over.abort();
    }
  }

  async #forgetAtEnd(dialogue: Dialogue): Promise<void> {
    const opened = this.#opened;
    await dialogue.ended;
    if (this.#opened === opened) this.#opened = undefined;
  }

  async #end(): Promise<void> {
    const opened = this.#opened;
    if (opened === undefined) return;
    opened.cancelStart.abort();
    const dialogue = await opened.dialogue.catch(() => undefined);
    await dialogue?.stop();
    if (this.#opened === opened) this.#opened = undefined;
  }
}

function failureOf(error: unknown): AgentFailure {
  if (error instanceof AgentFailure) return error;
  return new AgentFailure('agent_failed', error instanceof Error ? error.message : String(error));
}
