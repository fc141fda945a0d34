import { describe, expect, it } from 'vitest';
import { Secret } from '../secret.ts';
import { createLogger } from './logger.ts';

function capture(pretty: boolean) {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  return { lines, logger: createLogger({ level: 'info', pretty, destination }) };
}

describe('the logger', () => {
  it('writes JSON with time, level and component', () => {
    const { lines, logger } = capture(false);
    logger.child({ component: 'worker' }).info({ vm_id: 'vm_1' }, 'created');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      level: 30,
      time: expect.stringMatching(/Z$/),
      component: 'worker',
      vm_id: 'vm_1',
      msg: 'created',
    });
  });

  it('redacts secrets by type and by name', () => {
    const { lines, logger } = capture(false);
    logger.info(
      {
        held: new Secret('canary'),
        token: 'canary',
        body: { llm_key: 'canary', env_vars: { A: 'canary' } },
        headers: { authorization: 'Bearer canary' },
      },
      'hello',
    );
    expect(lines.join()).not.toContain('canary');
    expect(lines.join()).toContain('hello');
  });

  it('writes short readable lines', () => {
    const { lines, logger } = capture(true);
    logger.child({ component: 'worker' }).warn({ vm_id: 'vm_1' }, 'slow');
    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d .*warn .* worker: slow vm_id=vm_1\n$/);
    logger.error({ err: new Error('boom') }, 'failed');
    expect(lines[1]).toContain('Error: boom');
  });
});
