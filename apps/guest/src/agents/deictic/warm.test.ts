import { expect, test } from 'vitest';
import { warmDeictic } from './index.ts';

test('every dialect can be warmed up without anybody outside', async () => {
  await expect(warmDeictic()).resolves.toBeUndefined();
});
