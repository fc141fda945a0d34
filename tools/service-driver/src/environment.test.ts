import { afterEach, expect, test, vi } from 'vitest';
import { serviceEnvironment } from './environment.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

test('the caller’s settings do not reach the service, except the image directory', async () => {
  vi.stubEnv('SVC_POOL', 'standard=9');
  vi.stubEnv('SVC_LOG_LEVEL', 'debug');
  vi.stubEnv('SVC_IMAGE_DIR', '/images');
  const env = await serviceEnvironment('/data');
  expect(env).toMatchObject({
    SVC_DATA_DIR: '/data',
    SVC_IMAGE_DIR: '/images',
    SVC_POOL: 'standard=1',
    PATH: process.env.PATH,
  });
  expect(env).not.toHaveProperty('SVC_LOG_LEVEL');
  expect(env).not.toHaveProperty('VITEST');
});

test('given variables take precedence, and the two servers have different ports', async () => {
  const options = { env: { SVC_POOL: 'standard=2' }, listenEverywhere: true };
  const { SVC_LISTEN, SVC_RUNTIME_LISTEN, SVC_POOL } = await serviceEnvironment('/data', options);
  expect(SVC_POOL).toBe('standard=2');
  expect(SVC_LISTEN).toMatch(/^0\.0\.0\.0:\d+$/);
  expect(SVC_RUNTIME_LISTEN).toMatch(/^localhost:\d+$/);
  expect(SVC_LISTEN?.split(':')[1]).not.toBe(SVC_RUNTIME_LISTEN?.split(':')[1]);
});
