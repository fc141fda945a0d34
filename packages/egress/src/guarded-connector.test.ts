import { expect, test } from 'vitest';
import { EgressError } from './egress-error.ts';
import type { EgressPolicy } from './egress-policy.ts';
import { guardedConnector } from './guarded-connector.ts';

test.each([
  ['example.com', '', 'example.com', 443],
  ['EXAMPLE.com', '8443', 'example.com', 8443],
  ['[::1]', '', '::1', 443],
])('the policy is asked about %s with the port "%s"', async (hostname, port, host, number) => {
  const asked: unknown[] = [];
  const policy = {
    addressesOf: async (...target: [string, number]) => {
      asked.push(target);
      throw new EgressError('is refused');
    },
  } as unknown as EgressPolicy;
  const connect = guardedConnector({ policy, connectMs: 1_000, trust: undefined });
  const outcome = Promise.withResolvers<Error | null>();
  connect({ protocol: 'https:', hostname, port, host: hostname }, (...[error]) =>
    outcome.resolve(error),
  );
  expect(await outcome.promise).toMatchObject({ code: 'egress_refused', problem: 'is refused' });
  expect(asked).toEqual([[host, number]]);
});
