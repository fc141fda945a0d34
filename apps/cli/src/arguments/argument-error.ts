import { InvalidArgumentError } from 'commander';

/** A value that a parser refuses: why, what it should be, and an example. */
export class ArgumentError extends InvalidArgumentError {
  constructor(problem: string, hint: string, example: string) {
    super(`${problem}\n  hint:    ${hint}\n  example: ${example}`);
  }
}
