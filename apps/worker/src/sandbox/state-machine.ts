import { canMove, type SandboxState } from '@svc/contract';

/** An attempt at a move that the life of a sandbox does not have; always a defect of the worker. */
export class IllegalMoveError extends Error {
  override readonly name = 'IllegalMoveError';

  constructor(from: SandboxState, to: SandboxState) {
    super(`a sandbox cannot move from ${from} to ${to}`);
  }
}

/** Holds the state of one sandbox. The only way to change it is a legal move. */
export class StateMachine {
  #state: SandboxState;

  constructor(initial: SandboxState) {
    this.#state = initial;
  }

  get state(): SandboxState {
    return this.#state;
  }

  /** Throws {@link IllegalMoveError} and changes nothing when the move is not a legal one. */
  assertCanMove(to: SandboxState): void {
    if (!canMove(this.#state, to)) throw new IllegalMoveError(this.#state, to);
  }

  move(to: SandboxState): void {
    this.assertCanMove(to);
    this.#state = to;
  }
}
