import { test } from 'vitest';
import type { TestCli } from './test-cli.ts';

/** Vitest's `test`, with the CLI as the fixture `cli`. */
export function cliTest(cli: () => TestCli) {
  return test.extend('cli', cli);
}

export type CliTest = ReturnType<typeof cliTest>;
