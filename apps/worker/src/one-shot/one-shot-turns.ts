import { settledWithin } from '@svc/service-kit/concurrency';
import type { AgentLinkHandler } from '../agents/link/agent-link.ts';
import type { NumberedMessage } from '../agents/link/guest-messages.ts';
import type { CommitOutcome } from '../sessions/metrics.ts';
import type { TurnStore } from '../sessions/turns/turn-store.ts';
import { HandledMessages } from './handled-messages.ts';
import type { PersistedState } from './persisted-state.ts';

/**
 * Sends the states of a one-shot agent to its persistence endpoint, if it has one, in the background. The guest keeps a
 * state until it has been sent, because this worker may end first. The frames of the agent end with its sandbox.
 */
export class OneShotTurns implements TurnStore {
  readonly #persisted: PersistedState | undefined;
  readonly #handled = new HandledMessages();
  #acknowledge: (n: number) => void = () => undefined;

  constructor(persisted: PersistedState | undefined) {
    this.#persisted = persisted;
  }

  get takesState(): boolean {
    return this.#persisted !== undefined;
  }

  /** Passes each of the guest's messages on once, and acknowledges those that the guest may forget. */
  handle(next: AgentLinkHandler): AgentLinkHandler {
    return {
      receive: async (messages, acknowledge) => {
        this.#acknowledge = acknowledge;
        const fresh = messages.filter(({ n }) => n > this.#handled.last);
        if (fresh.length === 0) return;
        await next.receive(fresh, (n) => {
          this.#handled.add(Math.max(n, this.#handled.last));
          acknowledge(this.#handled.acknowledgeable);
        });
      },
      lost: () => next.lost(),
    };
  }

  async commitTurn({
    n,
    conversation,
  }: Extract<NumberedMessage, { type: 'state' }>): Promise<CommitOutcome> {
    if (this.#persisted === undefined) return 'committed';
    this.#handled.hold(n);
    this.#persisted.save(conversation, () => {
      this.#handled.release(n);
      this.#acknowledge(this.#handled.acknowledgeable);
    });
    return 'committed';
  }

  commitInBackground(): void {
    // There is nothing to commit.
  }

  async idle(): Promise<void> {
    // Nothing is committed in the background.
  }

  async commitForRestart(): Promise<void> {
    // The guest keeps a state that has not been sent, for the next worker process.
  }

  async commitLast(): Promise<boolean> {
    return true;
  }

  async commitRest(ms: number): Promise<void> {
    if (this.#persisted !== undefined) await settledWithin(this.#persisted.idle(), ms);
  }
}
