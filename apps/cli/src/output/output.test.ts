import { PassThrough } from 'node:stream';
import { ConfigError } from '@svc/config';
import { SvcError } from '@svc/sdk';
import { expect, test } from 'vitest';
import { CliError } from './cli-error.ts';
import { Progress } from './progress.ts';
import { describeError, exitCodeOf } from './report-error.ts';
import { formatTable } from './table.ts';
import { formatDuration, formatMib } from './units.ts';

test('tables align their columns', () => {
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
])('%d ms is shown as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test('sizes', () => {
  expect(formatMib(512)).toBe('512 MiB');
  expect(formatMib(1536)).toBe('1.5 GiB');
});

test('a failure of the service shows what, fields, next step, code and request id', () => {
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

test('a failure of the command line itself shows its next step', () => {
  const error = new CliError('no_code', 'no code was given', { next: 'try again', exitCode: 2 });
  expect(describeError(error)).toEqual([
    'svc: no code was given',
    '  next:    try again',
    '  code:    no_code',
  ]);
  expect(exitCodeOf(error)).toBe(2);
});

test('wrong settings are all named, without a stack', () => {
  const error = new ConfigError(['SVC_LISTEN must be host:port', 'SVC_TLS must be on or off']);
  expect(describeError(error).join('\n')).toMatch(
    /SVC_LISTEN.*\n.*SVC_TLS.*\n {2}next: .*\n {2}code: +invalid_configuration$/,
  );
});

test('an interrupt is not a defect', () => {
  const error = new DOMException('interrupted', 'AbortError');
  expect(describeError(error)).toEqual(['svc: interrupted']);
  expect(exitCodeOf(error)).toBe(130);
});

test('progress away from a terminal is one plain line a step', async () => {
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
