import { expect, test } from 'vitest';
import { warmDeictic } from './index.ts';

test('warms up without any outside server', async () => {
  await expect(warmDeictic()).resolves.toBeUndefined();
});
