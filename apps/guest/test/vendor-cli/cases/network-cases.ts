import { expect } from 'vitest';
import type { CliTest } from '../cli-test.ts';

/** The connections that the CLI has made in all tests so far. */
export function networkCases(test: CliTest): void {
  test('connects to nothing but the gateway', async ({ cli }) => {
    const { driver, proxy, server } = cli;
    cli.script();
    await cli.run('one more request');
    expect(proxy.refused).toEqual([]);
    const requests = server.requests.map(({ method, path }) => `${method} ${path}`);
    expect([...new Set(requests)]).toEqual([driver.request]);
    const models = server.requests.map(({ body }) => (body as { model?: string })?.model);
    const named = [driver.model, driver.otherModel];
    expect(models.filter((model) => model === undefined || !named.includes(model))).toEqual([]);
  });
}
