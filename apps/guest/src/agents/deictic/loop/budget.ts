import type { DeicticOptions } from '../options.ts';
import { TaskFailure } from './task-failure.ts';

/** The remaining turns and tokens of a task, shared by all its agents. */
export class Budget {
  #turns: number;
  #tokens: number;

  constructor({ turns, tokens }: Pick<DeicticOptions, 'turns' | 'tokens'>) {
    this.#turns = turns;
    this.#tokens = tokens;
  }

  /** Takes a turn, before each model call. @throws a TaskFailure when turns or tokens are used up */
  takeTurn(): void {
    if (this.#turns <= 0) throw new TaskFailure('turn_limit');
    if (this.#tokens <= 0) throw new TaskFailure('token_limit');
    this.#turns -= 1;
  }

  /** Subtracts the tokens of a model call. */
  useTokens(tokens: number): void {
    this.#tokens -= tokens;
  }
}
