import type { ErrorCode } from '@svc/contract';
import { describe, test } from 'vitest';
import { expectProblem } from '../../test/assertions.ts';
import { useOwnerRequests } from '../../test/owner-requests.ts';

const { send, post } = useOwnerRequests();

describe('an exec is refused', () => {
  test.each<[string, unknown, ErrorCode]>([
    ['without a command', {}, 'command_required'],
    ['with an empty command', { command: '' }, 'command_required'],
    ['with null as command', { command: null }, 'command_required'],
    ['with a list as command', { command: ['ls'] }, 'command_required'],
    ['with NUL in the command', { command: 'echo \0' }, 'command_required'],
    ['with a command over the limit', { command: 'x'.repeat(120_001) }, 'command_required'],
    ['with a relative cwd', { command: 'ls', cwd: 'tmp' }, 'validation_failed'],
    ['with NUL in cwd', { command: 'ls', cwd: '/a\0' }, 'validation_failed'],
    [
      'with a cwd over the limit',
      { command: 'ls', cwd: `/${'x'.repeat(5000)}` },
      'validation_failed',
    ],
    ['with a list as env', { command: 'ls', env: ['A=1'] }, 'validation_failed'],
    ['with an invalid name in env', { command: 'ls', env: { 'A B': '1' } }, 'validation_failed'],
    ['with a timeout of 0', { command: 'ls', timeout_seconds: 0 }, 'validation_failed'],
    ['with a negative timeout', { command: 'ls', timeout_seconds: -1 }, 'validation_failed'],
    ['with a timeout over the limit', { command: 'ls', timeout_seconds: 1e9 }, 'validation_failed'],
  ])('%s', async (_case, body, code) => {
    expectProblem(await post('/v1/sandboxes/{id}/exec', body), code);
  });
});

describe('an invalid file path is refused', () => {
  const paths: readonly (readonly [string, ErrorCode])[] = [
    ['', 'path_required'],
    ['?path=', 'path_required'],
    ['?path=/a&path=/b', 'path_required'],
    ['?path=relative/file', 'path_not_absolute'],
    ['?path=./file', 'path_not_absolute'],
    ['?path=/../etc/passwd', 'path_traversal'],
    ['?path=/tmp/..', 'path_traversal'],
    ['?path=/tmp/../etc/passwd', 'path_traversal'],
    ['?path=/tmp/%2e%2e/etc/passwd', 'path_traversal'],
    ['?path=%2Ftmp%2F..%2Fetc', 'path_traversal'],
    ['?path=/tmp/%c0%ae%c0%ae/etc/passwd', 'invalid_url'],
    ['?path=/tmp/nul%00byte', 'invalid_path'],
    [`?path=/${'x'.repeat(256)}`, 'invalid_path'],
    [`?path=${'/x'.repeat(2049)}`, 'invalid_path'],
    ['?path=/tmp/%ff%fe', 'invalid_url'],
    ['?path=/tmp/%zz', 'invalid_url'],
  ];

  test.each(paths)('GET %s', async (query, code) => {
    expectProblem(await send({ target: `/v1/sandboxes/{id}/files${query}` }), code);
  });

  test.each(paths)('POST %s', async (query, code) => {
    const headers = { 'content-type': 'application/octet-stream' };
    expectProblem(await post(`/v1/sandboxes/{id}/files${query}`, 'x', headers), code);
  });
});
