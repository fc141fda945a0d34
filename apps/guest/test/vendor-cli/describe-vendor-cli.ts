import { afterAll, beforeAll, beforeEach, describe } from 'vitest';
import { conversationCases, transcriptCases } from './cases/conversation-cases.ts';
import { failureCases } from './cases/failure-cases.ts';
import { interruptCases } from './cases/interrupt-cases.ts';
import { networkCases } from './cases/network-cases.ts';
import { processCases, rotationCases } from './cases/process-cases.ts';
import { toolCases } from './cases/tool-cases.ts';
import { turnCases } from './cases/turn-cases.ts';
import type { CliDriver } from './cli-driver.ts';
import { type CliTest, cliTest } from './cli-test.ts';
import { INSTALL_MS } from './install-clis.ts';
import { TestCli, TURN_MS } from './test-cli.ts';

/**
 * The behaviour required of every vendor's CLI, tested on the real program with a scripted model, plus the tests of
 * this CLI alone. All tests share one session; each must leave it open.
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
    toolCases(test);
    ownCases(test);
    // In this order, because it spares a restart: the second begins with a session of its own.
    rotationCases(test);
    transcriptCases(test);
    // Must be last: it examines the requests of all the other tests.
    networkCases(test);
  });
}
