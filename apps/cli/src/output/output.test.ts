import { PassThrough } from 'node:stream';
import { ConfigError } from '@svc/config';
import { SvcError } from '@svc/sdk';
import { expect, test } from 'vitest';
import { bar } from './bar.ts';
import { CliError, describeError, exitCodeOf } from './errors.ts';
import { formatDuration, formatMib, formatTable, formatUsd } from './format.ts';
import { Progress } from './progress.ts';

test('aligns the columns of a table', () => {
  expect(
    formatTable([
      ['ID', 'STATE'],
      ['vm_1', 'running'],
    ]),
  ).toBe('ID    STATE\nvm_1  running');
});

test.each([
  [12.4, '12 ms'],
  [3_210, '3.2 s'],
  [250_000, '4m 10s'],
  [7_500_000, '2h 5m'],
])('formats %d ms as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test('formats amounts of money, small ones with more digits', () => {
  expect([4.875, 0.000123, -0.5, 0, 12].map(formatUsd)).toEqual([
    '$4.88',
    '$0.000123',
    '-$0.50',
    '$0.00',
    '$12.00',
  ]);
});

test('draws bars in eighths of a character, and any value that is not 0', () => {
  expect([8, 4, 0.5, 0.001, 0].map((value) => bar(value, 8, 2))).toEqual(['██', '█', '▏', '▏', '']);
});

test('formats sizes in MiB or GiB', () => {
  expect(formatMib(512)).toBe('512 MiB');
  expect(formatMib(1536)).toBe('1.5 GiB');
});

test('describes an error of the service with its fields, next step, code and request id', () => {
  const error = new SvcError({
    code: 'validation_failed',
    title: 'Invalid request',
    detail: 'Correct the fields.',
    status: 400,
    requestId: 'req-1',
    errors: [{ path: '/vcpu', message: 'must be <= 8' }],
  });
  expect(describeError(error)).toEqual([
    'svc: Invalid request',
    '  /vcpu: must be <= 8',
    '  next:    Correct the fields.',
    '  code:    validation_failed',
    '  request: req-1',
  ]);
  expect(exitCodeOf(error)).toBe(1);
});

test('describes an error of the command line with its next step and code', () => {
  const error = new CliError('no_code', 'no code was given', { next: 'try again', exitCode: 2 });
  expect(describeError(error)).toEqual([
    'svc: no code was given',
    '  next:    try again',
    '  code:    no_code',
  ]);
  expect(exitCodeOf(error)).toBe(2);
});

test('describes what went wrong first when its cleanup failed, too', () => {
  const error = new CliError('first', 'It went wrong.', { exitCode: 7 });
  const both = new SuppressedError(new Error('the cleanup'), error);
  expect(describeError(both)).toEqual(describeError(error));
  expect(exitCodeOf(both)).toBe(7);
});

test('names every invalid setting, without a stack trace', () => {
  const error = new ConfigError(['SVC_LISTEN must be host:port', 'SVC_TLS must be on or off']);
  expect(describeError(error).join('\n')).toMatch(
    /SVC_LISTEN.*\n.*SVC_TLS.*\n {2}next: .*\n {2}code: +invalid_configuration$/,
  );
});

test('reports an interrupt with exit code 130 and without a stack trace', () => {
  const error = new DOMException('interrupted', 'AbortError');
  expect(describeError(error)).toEqual(['svc: interrupted']);
  expect(exitCodeOf(error)).toBe(130);
});

test('prints one plain line per step if the output is not a terminal', async () => {
  const out = new PassThrough();
  const progress = new Progress(out as unknown as NodeJS.WriteStream);
  const result = await progress.step('database', async () => 42, String);
  const failure = progress.step('worker', () => Promise.reject(new Error('no')));
  await expect(failure).rejects.toThrow('no');
  expect(result).toBe(42);
  const [first, second] = String(out.read()).split('\n');
  expect(first).toMatch(/^ {2}✓ database +42 +\d+ ms$/);
  expect(second).toMatch(/^ {2}✗ worker +failed after \d+ ms$/);
});
