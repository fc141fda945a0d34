import { afterAll, test as base, beforeAll, beforeEach, describe } from 'vitest';
import { conversationCases } from './cases/conversation-cases.ts';
import { failureCases } from './cases/failure-cases.ts';
import { interruptCases } from './cases/interrupt-cases.ts';
import { outreachCases } from './cases/outreach-cases.ts';
import { processCases } from './cases/process-cases.ts';
import { turnCases } from './cases/turn-cases.ts';
import type { CliDriver } from './cli-driver.ts';
import { INSTALL_MS } from './install-clis.ts';
import { TestCli, TURN_MS } from './test-cli.ts';

/** `test` of vitest, with the CLI in its context. */
export type CliTest = ReturnType<typeof cliTest>;

/**
 * What every vendor's CLI must do, shown on the real one with a scripted model; and its own cases beside. All cases
 * share one session, which none of them leaves closed.
 */
export function describeVendorCli(
  name: string,
  driver: CliDriver,
  ownCases: (test: CliTest) => void,
): void {
  describe(name, { timeout: TURN_MS }, () => {
    let cli: TestCli | undefined;
    const test = cliTest(() => {
      if (cli === undefined) throw new Error('the CLI was not started');
      return cli;
    });

    beforeAll(async () => {
      cli = await TestCli.start(driver);
    }, INSTALL_MS);
    afterAll(() => cli?.[Symbol.asyncDispose]());
    beforeEach(() => cli?.reset());

    turnCases(test);
    interruptCases(test);
    failureCases(test, driver.cutCode);
    processCases(test);
    conversationCases(test);
    ownCases(test);
    // The last one: it looks at what all the others did.
    outreachCases(test);
  });
}

function cliTest(cli: () => TestCli) {
  return base.extend('cli', cli);
}
