import type { DeicticOptions } from '../options.ts';
import { TaskFailure } from './task-failure.ts';

/** What a task may still use, shared by all who work on it. */
export class Budget {
  #turns: number;
  #tokens: number;

  constructor({ turns, tokens }: Pick<DeicticOptions, 'turns' | 'tokens'>) {
    this.#turns = turns;
    this.#tokens = tokens;
  }

  /** Before each step. @throws a TaskFailure when nothing is left */
  takeTurn(): void {
    if (this.#turns <= 0) throw new TaskFailure('turn_limit');
    if (this.#tokens <= 0) throw new TaskFailure('token_limit');
    this.#turns -= 1;
  }

  /** What a call of the model took. */
  useTokens(tokens: number): void {
    this.#tokens -= tokens;
  }
}
