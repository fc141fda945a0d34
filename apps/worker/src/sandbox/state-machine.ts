import { canMove, type SandboxState } from '@svc/contract';

/** An attempt to make an illegal change of state; always a defect of the worker. */
export class IllegalMoveError extends Error {
  override readonly name = 'IllegalMoveError';

  constructor(from: SandboxState, to: SandboxState) {
    super(`a sandbox cannot move from ${from} to ${to}`);
  }
}

/** The state of one sandbox. Only legal moves can change it. */
export class StateMachine {
  #state: SandboxState;

  constructor(initial: SandboxState) {
    this.#state = initial;
  }

  get state(): SandboxState {
    return this.#state;
  }

  /** @throws IllegalMoveError */
  assertCanMove(to: SandboxState): void {
    if (!canMove(this.#state, to)) throw new IllegalMoveError(this.#state, to);
  }

  /** @throws IllegalMoveError, the state unchanged */
  move(to: SandboxState): void {
    this.assertCanMove(to);
    this.#state = to;
  }
}
