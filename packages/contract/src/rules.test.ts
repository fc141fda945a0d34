import fc from 'fast-check';
import { Value } from 'typebox/value';
import { describe, expect, it } from 'vitest';
import {
  AppJson,
  apiKeyPrefix,
  CreateSandboxRequest,
  ERRORS,
  type ErrorCode,
  effectiveTimeouts,
  isAgent,
  isErrorCode,
  isId,
  isMultiAgent,
  isServiceError,
  isTemplate,
  looksLikeApiKey,
  looksLikeCode,
  makeId,
  makeProblem,
  modelProblem,
  normaliseEmail,
  Problem,
  RESERVED_KEYS,
  reservedKeysIn,
  resolveLogsQuery,
  ServiceError,
} from './index.ts';

const codes = Object.keys(ERRORS).filter(isErrorCode);

describe('errors', () => {
  it('have a snake_case code, an error status, a title and a full sentence', () => {
    for (const code of codes) {
      const { status, title, detail } = ERRORS[code];
      expect(code).toMatch(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/);
      expect(status).toBeGreaterThanOrEqual(400);
      expect(status).toBeLessThan(600);
      expect(title).not.toBe('');
      expect(detail).toMatch(/\.$/);
    }
  });

  it('produce problem bodies that match the schema', () => {
    for (const code of codes) expect(Value.Check(Problem, makeProblem(code, 'r-1'))).toBe(true);
    expect(makeProblem('no_workers', 'r-1', 'Wait.', [{ path: '/a', message: 'b' }])).toMatchObject(
      {
        type: '/errors/no_workers',
        status: 503,
        detail: 'Wait.',
        errors: [{ path: '/a', message: 'b' }],
      },
    );
  });

  it('say when to try again, if they pass by themselves', () => {
    const removable = ['bundle_quota_exceeded'];
    // Their limits know the time.
    const timed = ['otp_rate_limited', 'ip_rate_limited'];
    for (const code of codes.filter((one) => [429, 503].includes(ERRORS[one].status))) {
      const isKnown = ![...removable, ...timed].includes(code);
      expect(Number(new ServiceError(code).headers['retry-after']) > 0, code).toBe(isKnown);
    }
    const { headers } = new ServiceError('rate_limited', undefined, {
      retryAfterSeconds: 7,
      headers: { allow: 'GET' },
    });
    expect(headers).toEqual({ 'retry-after': '7', allow: 'GET' });
    expect(new ServiceError('unauthorized').headers).toEqual({});
  });

  it('are recognised by their code; codes outside the catalogue are rejected', () => {
    const cause = new Error('why');
    const error = new ServiceError('no_capacity', undefined, { cause });
    expect(error).toMatchObject({ status: 409, message: ERRORS.no_capacity.detail, cause });
    expect(isServiceError(error, 'no_capacity')).toBe(true);
    expect(isServiceError(error, 'no_workers')).toBe(false);
    expect(isServiceError(cause)).toBe(false);
    for (const name of ['toString', '__proto__', 'nope', 7]) expect(isErrorCode(name)).toBe(false);
  });
});

describe('ids', () => {
  it('accept any UUID of version 7 and preserve its order', () => {
    fc.assert(
      fc.property(fc.uuid({ version: 7 }), fc.uuid({ version: 7 }), (a, b) => {
        expect(isId('sandbox', makeId('sandbox', a))).toBe(true);
        expect(isId('user', makeId('sandbox', a))).toBe(false);
        expect(makeId('user', a) < makeId('user', b)).toBe(a < b);
      }),
    );
  });

  it('reject any other form', () => {
    fc.assert(fc.property(fc.string(), (text) => !isId('sandbox', `vm_${text}`)));
    expect(isId('sandbox', `vm_${'0'.repeat(32)}\n`)).toBe(false);
  });
});

describe('agents and models', () => {
  it.each<[Parameters<typeof modelProblem>[0], string | undefined, ErrorCode | undefined]>([
    ['deictic', undefined, 'model_required'],
    ['deictic', '', 'model_required'],
    ['deictic', 'any/model:v1@x', undefined],
    ['deictic', 'with space', 'model_not_allowed'],
    ['claude-code', undefined, undefined],
    ['claude-code', 'claude-x', undefined],
    ['claude-code', 'Claude-x', 'model_not_allowed'],
    ['claude-code', 'gpt-5', 'model_not_allowed'],
    ['codex', 'gpt-5', undefined],
    ['codex', 'o3', undefined],
    ['codex', 'claude-x', 'model_not_allowed'],
    ['codex', `o${'x'.repeat(128)}`, 'model_not_allowed'],
  ])('%s with %s: %s', (agent, model, problem) => {
    expect(modelProblem(agent, model)).toBe(problem);
  });

  it('are matched by exact name, as are templates', () => {
    expect([isAgent('codex'), isAgent('Codex'), isAgent('toString')]).toEqual([true, false, false]);
    expect([isTemplate('standard'), isTemplate('standard ')]).toEqual([true, false]);
  });
});

describe('reserved keys', () => {
  it('are found among any other names', () => {
    const names = fc
      .string({ minLength: 1 })
      .filter((name) => !RESERVED_KEYS.some((key) => key === name));
    fc.assert(
      fc.property(
        fc.dictionary(names, fc.string()),
        fc.subarray([...RESERVED_KEYS]),
        (others, reserved) => {
          const values = { ...others, ...Object.fromEntries(reserved.map((name) => [name, ''])) };
          expect(reservedKeysIn(values)).toEqual(reserved);
        },
      ),
    );
    expect(reservedKeysIn({ task: 'x' })).toEqual([]);
  });
});

describe('timeouts', () => {
  it('have defaults and are clamped to the cap', () => {
    expect(effectiveTimeouts({})).toEqual({ idleTimeoutSeconds: 60, maxLifetimeSeconds: 7200 });
    fc.assert(
      fc.property(fc.integer({ min: 1 }), fc.double({ min: 1, noNaN: true }), (idle, lifetime) => {
        const seconds = effectiveTimeouts({
          idle_timeout_seconds: idle,
          max_lifetime_seconds: lifetime,
        });
        expect(seconds.idleTimeoutSeconds).toBe(Math.min(idle, 7200));
        expect(seconds.maxLifetimeSeconds).toBe(Math.min(lifetime, 7200));
      }),
    );
  });
});

describe('log queries', () => {
  it('resolve to one tail, clamped to the limits', () => {
    expect(resolveLogsQuery({})).toEqual({ lines: 100 });
    expect(resolveLogsQuery({ lines: 10_001 })).toEqual({ lines: 10_000 });
    expect(resolveLogsQuery({ bytes: 2 ** 30, stream: 'stderr' })).toEqual({ bytes: 1_048_576 });
  });

  it('reject lines combined with bytes, and streams that are not implemented', () => {
    const codeOf = (query: Parameters<typeof resolveLogsQuery>[0]): unknown => {
      try {
        return resolveLogsQuery(query);
      } catch (error) {
        return isServiceError(error) ? error.code : error;
      }
    };
    expect(codeOf({ lines: 1, bytes: 1 })).toBe('log_lines_and_bytes');
    expect(codeOf({ stream: 'stdout' })).toBe('log_stream_not_implemented');
    expect(codeOf({ stream: 'all' })).toBe('log_stream_not_implemented');
  });
});

describe('app_json', () => {
  const agent = { name: 'a', capability_name: 'c', capability_description: 'd', tools: ['t'] };
  const app = (agents: object[]) => ({ name: 'n', capability_sets: [{ name: 's', agents }] });

  it('accepts only the nested form', () => {
    expect(Value.Check(AppJson, app([agent]))).toBe(true);
    for (const bad of [
      {},
      { name: 'n' },
      { name: 'n', capability_sets: [] },
      app([]),
      { name: 'n', agents: [agent] },
    ]) {
      expect(Value.Check(AppJson, bad)).toBe(false);
    }
  });

  it('may contain several agents', () => {
    expect(isMultiAgent({ name: 'n', capability_sets: [{ name: 's', agents: [agent] }] })).toBe(
      false,
    );
    expect(
      isMultiAgent({ name: 'n', capability_sets: [{ name: 's', agents: [agent, agent] }] }),
    ).toBe(true);
  });
});

describe('accounts', () => {
  it('normalise e-mail addresses and reject malformed ones', () => {
    expect(normaliseEmail('  Ada.Lovelace+x@Example.COM ')).toBe('ada.lovelace+x@example.com');
    const bad = [
      '',
      'ada',
      '@x.com',
      'ada@',
      'ada@localhost',
      'a b@x.com',
      'ada@x..com',
      'ada@-x.com',
      'ada@x.com\nBcc: b@y.com',
      `${'a'.repeat(65)}@x.com`,
      'ada@x.com,b@y.com',
    ];
    for (const email of bad) expect(normaliseEmail(email)).toBeUndefined();
    fc.assert(
      fc.property(fc.emailAddress(), (email) => {
        const normal = normaliseEmail(email);
        if (normal !== undefined) expect(normaliseEmail(normal)).toBe(normal);
      }),
    );
  });

  it('recognise API keys and one-time codes by their form', () => {
    const live = `svc_live_${'aB3'.repeat(14)}x`;
    const tenant = `svc_${'0a'.repeat(32)}`;
    expect([live, tenant].map(looksLikeApiKey)).toEqual([true, true]);
    for (const bad of ['', 'svc_', `${live}x`, tenant.toUpperCase(), `${tenant}\n`]) {
      expect(looksLikeApiKey(bad)).toBe(false);
    }
    expect([apiKeyPrefix(live).length, apiKeyPrefix(tenant).length]).toEqual([16, 12]);
    expect(['012345', '12345', '1234567', '12345a', '１２３４５６'].map(looksLikeCode)).toEqual([
      true,
      false,
      false,
      false,
      false,
    ]);
  });
});

describe('the create request', () => {
  it('accepts the smallest request and rejects a wrong type in any field', () => {
    expect(Value.Check(CreateSandboxRequest, { template: 'standard' })).toBe(true);
    for (const name of Object.keys(CreateSandboxRequest.properties)) {
      for (const wrong of [null, [], [1]]) {
        expect(Value.Check(CreateSandboxRequest, { template: 'standard', [name]: wrong })).toBe(
          false,
        );
      }
    }
  });

  it('accepts unknown agents and templates, which later rules reject', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 128 }), (name) =>
        Value.Check(CreateSandboxRequest, { template: name, agent: name }),
      ),
    );
  });
});
