import type { ProcessExit } from '../processes/index.ts';
import type { ToolServer } from '../tool-server/index.ts';
import type { AgentFailure } from './failure.ts';
import type { TurnFrames } from './turn-frames.ts';

/** How a turn ended, as reported by the CLI. */
export type TurnEnd =
  | { readonly status: 'completed'; readonly result: string }
  | { readonly status: 'interrupted' }
  | { readonly status: 'failed'; readonly failure: AgentFailure };

/** One process of a vendor's CLI, controlled through its own protocol. */
export interface Dialogue {
  /** Settles when the CLI accepts prompts; rejects when it reports that it cannot. Stays pending if the process ends first. */
  readonly ready: Promise<void>;
  /** Settles (never rejects) when the process has ended and all its messages are handled. */
  readonly ended: Promise<ProcessExit>;
  /** Milliseconds since the last message in either direction. */
  readonly silentMs: number;
  /**
   * Runs one prompt; only one at a time. Settles when the CLI reports the end of the turn. Stays pending if the process
   * ends first.
   */
  runTurn(prompt: string, frames: TurnFrames): Promise<TurnEnd>;
  /** Asks the CLI to end the turn now. */
  interrupt(): void;
  /** Ends the process, within a few seconds. */
  stop(): Promise<void>;
}

/** A vendor's CLI. A session has one process of it at a time. */
export interface VendorCli {
  /** Its name in messages. */
  readonly name: string;
  /** The value of `MARK` in the environment of its processes. */
  readonly mark: string;
  /** The environment of the process and its commands. When it changes, the process must be restarted. */
  environment(): Record<string, string>;
  /** Starts a process that continues the conversation. Rejects when it cannot be started. */
  open(env: Record<string, string>): Promise<Dialogue>;
  /** Directory of its transcripts: one file per conversation, whose name ends with the conversation's id. */
  readonly transcripts: string;
  /** Its id of the conversation; undefined before there is one. */
  readonly conversation: string | undefined;
  /** The server of the template's tools; undefined if there are none. */
  readonly tools: ToolServer | undefined;
}
