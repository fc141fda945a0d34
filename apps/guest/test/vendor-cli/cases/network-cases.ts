import { expect } from 'vitest';
import type { CliTest } from '../cli-test.ts';

/** What the CLI has asked, and of whom, in every case until now. */
export function networkCases(test: CliTest): void {
  test('has reached out to nothing but the gateway', async ({ cli }) => {
    const { driver, proxy, server } = cli;
    cli.script();
    await cli.run('whom did you ask?');
    expect(proxy.wanted).toEqual([]);
    const requests = server.requests.map(({ method, path }) => `${method} ${path}`);
    expect([...new Set(requests)]).toEqual([driver.request]);
    const models = server.requests.map(({ body }) => (body as { model?: string })?.model);
    expect([...new Set(models)]).toEqual([driver.model]);
  });
}
