import type { FrameErrorCode } from '@svc/contract';
import type { Reply } from '@svc/model-server';
import { expect } from 'vitest';
import type { CliTest } from '../cli-test.ts';

/** Turns in which the model endpoint fails. */
export function failureCases(test: CliTest, cutCode: FrameErrorCode): void {
  test.for<[FrameErrorCode, Reply]>([
    ['llm_unauthorized', { status: 401 }],
    ['llm_rate_limited', { status: 429, retry_after: '0' }],
    ['llm_overloaded', { status: 529 }],
    ['llm_refused', { status: 400 }],
    ['llm_bad_response', { fault: 'garbage' }],
    ['llm_unavailable', { fault: 'close' }],
    [cutCode, { fault: 'cut', text: ['some ', 'text'] }],
  ])('reports %s and runs the next task after %o', async ([code, reply], { cli }) => {
    cli.script({ reply });
    const failed = await cli.run('please', { id: 'task-1' });
    expect(failed.status).toBe('failed');
    expect(cli.world.frames.filter((frame) => frame.type === 'error')).toMatchObject([
      { code, id: 'task-1' },
    ]);
    cli.script({ reply: { text: 'well again' } });
    expect(await cli.run('and now?')).toEqual({ status: 'completed', result: 'well again' });
  });
}
