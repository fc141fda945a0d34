import type { AgentSetup } from '@svc/contract';
import { expect, test } from 'vitest';
import { cliEnvironment } from './environment.ts';

test('a bundle cannot redirect the CLI away from the gateway or the server of tools', () => {
  const env = cliEnvironment(
    {
      setup: { gateway: 'http://172.30.0.1:7200/anthropic' } as AgentSetup,
      home: '/home/agent',
      env: () => ({
        PATH: '/bin',
        HOME: '/elsewhere',
        ANTHROPIC_BASE_URL: 'https://elsewhere.example',
        HTTPS_PROXY: 'http://proxy.example',
        NO_PROXY: 'internal.example',
        TOKEN: 'value',
      }),
    },
    { reserved: ['ANTHROPIC_'], set: { CLI: '1' } },
    'mark',
  );
  expect(env).toEqual({
    PATH: '/bin',
    HOME: '/home/agent',
    HTTPS_PROXY: 'http://proxy.example',
    NO_PROXY: 'internal.example,172.30.0.1,127.0.0.1',
    no_proxy: 'internal.example,172.30.0.1,127.0.0.1',
    TOKEN: 'value',
    CLI: '1',
    SVC_AGENT_MARK: 'mark',
  });
});
