import type { ProcessExit } from '../processes/index.ts';
import type { AgentFailure } from './failure.ts';
import type { TurnFrames } from './turn-frames.ts';

/** How a turn ended, as the CLI says. */
export type TurnEnd =
  | { readonly status: 'completed'; readonly result: string }
  | { readonly status: 'interrupted' }
  | { readonly status: 'failed'; readonly failure: AgentFailure };

/** One process of a vendor's CLI, spoken to in its own protocol. */
export interface Dialogue {
  /** Settles when the CLI can take a prompt; rejects when it says that it cannot. Pending once it has ended. */
  readonly ready: Promise<void>;
  /** Settles (never rejects) when the process has ended and all that it said was handled. */
  readonly ended: Promise<ProcessExit>;
  /** Milliseconds since it last said something. */
  readonly silentMs: number;
  /**
   * Has the CLI work on a prompt, one at a time; settles when it says that the turn is over. Pending when the
   * process ends before.
   */
  runTurn(prompt: string, frames: TurnFrames): Promise<TurnEnd>;
  /** Asks the CLI to end the turn now. */
  interrupt(): void;
  /** Ends the process; takes some seconds at most. */
  stop(): Promise<void>;
}

/** A vendor's CLI, of which a session has one process at a time. */
export interface VendorCli {
  /** For messages. */
  readonly name: string;
  /** What `MARK` is in the environment of its processes. */
  readonly mark: string;
  /** Environment of the process and its commands; another one asks for another process. */
  environment(): Record<string, string>;
  /** Starts a process that goes on with the conversation. Rejects when it cannot be started. */
  open(env: Record<string, string>): Promise<Dialogue>;
  /** Directory of its transcripts: one file for each conversation, whose name ends with the conversation's. */
  readonly transcripts: string;
  /** Its name for the conversation; undefined as long as it has none. */
  readonly conversation: string | undefined;
}
