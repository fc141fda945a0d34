import type { NumberedMessage } from '../../agents/link/guest-messages.ts';
import type { CommitOutcome } from '../metrics.ts';

/** The place that keeps what the turns of an agent leave behind. */
export interface TurnStore {
  /** Whether it would keep a state that the agent saved now. */
  readonly takesState: boolean;
  /** Keeps the state of a turn, and the frames before it. Rejects only when the agent is released. */
  commitTurn(state: Extract<NumberedMessage, { type: 'state' }>): Promise<CommitOutcome>;
  /** Keeps the frames after a turn in the background. */
  commitInBackground(): void;
  /** Settles when no commit runs in the background. Never rejects. */
  idle(): Promise<void>;
  /** Keeps the rest at the end of the sandbox. Never rejects; ends within `ms`. */
  commitRest(ms: number): Promise<void>;
  /**
   * Keeps the frames so far when the worker stops but the sandbox stays, in case its machine does not come back. Rejects
   * when that is not possible, or not before `signal` aborts.
   */
  commitForRestart(signal: AbortSignal): Promise<void>;
  /**
   * Keeps what is left once the journal is closed. Never rejects; ends within `ms`. False when there are frames left
   * that have to outlive the sandbox.
   */
  commitLast(ms: number): Promise<boolean>;
}
