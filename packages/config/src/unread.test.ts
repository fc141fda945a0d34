import { describe, expect, it } from 'vitest';
import { ConfigError, loadConfig, loadServiceConfig } from './config.ts';

const HOME = { HOME: '/home/ada' };

function problemsOf(environment: Record<string, string>): readonly string[] {
  try {
    loadServiceConfig({ ...HOME, ...environment });
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('the start of a service refuses', () => {
  it('unknown variables, with the name that was probably meant', () => {
    expect(
      problemsOf({ SVC_LISTN: 'x', SVC_LIMIT_UPLOAD_BYTE: '1', SVC_SOMETHING_ELSE: 'x' }),
    ).toEqual([
      'SVC_LIMIT_UPLOAD_BYTE is not a setting; did you mean SVC_LIMIT_UPLOAD_BYTES?',
      'SVC_LISTN is not a setting; did you mean SVC_LISTEN?',
      'SVC_SOMETHING_ELSE is not a setting; unset it',
    ]);
  });

  it('them together with invalid values, without their own', () => {
    const problems = problemsOf({
      SVC_LISTEN: 'nowhere',
      SVC_LISTN: 'canary',
      SVC_S3_SECRET: 'canary',
    });
    expect(problems).toHaveLength(3);
    expect(problems.join()).not.toContain('canary');
  });
});

it('accepts variables of client commands, empty values and names without the prefix', () => {
  expect(problemsOf({ SVC_API_KEY: 'k', SVC_LISTN: '', SVCLISTEN: 'x', PATH: '/bin' })).toEqual([]);
});

it('client commands ignore variables that nothing reads', () => {
  expect(loadConfig({ ...HOME, SVC_LISTN: 'x', SVC_S3_SECRET: 'b' }).tls).toBe(true);
});
